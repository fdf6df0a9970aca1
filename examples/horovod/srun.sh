#!/bin/bash
#SBATCH -J horovod-srun       # Horovod: srun starts the ranks, and PMIx joins them
#SBATCH -o horovod-srun-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

srun --mpi=pmix python3 train.py
