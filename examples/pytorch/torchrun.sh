#!/bin/bash
#SBATCH -J torchrun           # PyTorch: a torchrun on each node; they meet at the first node (c10d)
#SBATCH -o torchrun-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=2

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
address=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address)
port=$((20000 + SLURM_JOB_ID % 10000)) # jobs that share a node do not share a port
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / SLURM_GPUS_ON_NODE))

srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node="$SLURM_GPUS_ON_NODE" \
	--rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$address:$port" \
	train.py
