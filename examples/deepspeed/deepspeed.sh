#!/bin/bash
#SBATCH -J deepspeed          # DeepSpeed: its launcher on each node, with a host file and without ssh
#SBATCH -o deepspeed-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2

export HOSTFILE=hostfile-$SLURM_JOB_ID
scontrol show hostnames "$SLURM_JOB_NODELIST" | while read -r host; do
	echo "$host slots=$SLURM_GPUS_ON_NODE"
done >"$HOSTFILE"
export MASTER_ADDR=$(head -n 1 "$HOSTFILE" | cut -d ' ' -f 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

srun bash -c '
	deepspeed --hostfile "$HOSTFILE" --no_ssh --node_rank "$SLURM_NODEID" \
		--master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" train.py'
