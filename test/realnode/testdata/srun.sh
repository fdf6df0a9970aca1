#!/bin/bash
#SBATCH -J who # is where
#SBATCH -N3 --ntasks-per-node=2
#SBATCH -t 5
echo "batch on $(hostname) of $SLURM_JOB_NODELIST as $(id -u)"
srun bash -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS: host $(hostname) node $SLURMD_NODENAME"'
