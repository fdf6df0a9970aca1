#!/bin/bash
#SBATCH -J jax                # JAX: a process for each task, which finds the others from Slurm's variables
#SBATCH -o jax-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

srun python3 train.py
