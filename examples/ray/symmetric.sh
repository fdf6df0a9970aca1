#!/bin/bash
#SBATCH -J ray-symmetric      # Ray 2.49 and later: one command on every node, the program on the first
#SBATCH -o ray-symmetric-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --tasks-per-node=1
#SBATCH --cpus-per-task=2

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$head:$((20000 + SLURM_JOB_ID % 10000))

srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" \
	ray symmetric-run --address "$address" --min-nodes "$SLURM_JOB_NUM_NODES" \
	--num-cpus="$SLURM_CPUS_PER_TASK" -- python3 -u job.py
