#!/bin/bash
#SBATCH -J torch-srun         # PyTorch without torchrun: srun starts a task for each rank
#SBATCH -o torch-srun-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

MASTER_ADDR=$(scontrol show node="$(scontrol show hostname | head -n 1)" | awk -F= '/NodeAddr=/ {print $2}' | awk '{print $1}')
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))
export MASTER_ADDR MASTER_PORT WORLD_SIZE

srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID exec python3 train.py'
