#!/bin/bash
#SBATCH -J jupyter            # a notebook on a compute node, which a browser reaches through the login node
#SBATCH -o jupyter-%j.out
#SBATCH -t 0-4:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2

node=$(hostname -s)
port=$(shuf -i 20000-29999 -n 1)
JUPYTER_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export JUPYTER_TOKEN
unset XDG_RUNTIME_DIR # the login node's directory, which is not there

cat <<EOF
On your computer:  ssh -N -L $port:$node:$port ${SLURM_JOB_USER}@login
In your browser:   http://localhost:$port/lab?token=$JUPYTER_TOKEN
At the end:        scancel $SLURM_JOB_ID
EOF
exec jupyter lab --no-browser --ip="$node" --port="$port"
