#!/bin/bash
#SBATCH -J pmix-ring          # OpenMPI: srun starts the ranks itself, and PMIx joins them
#SBATCH -o pmix-%j.out
#SBATCH -t 10
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1

srun --mpi=pmix python3 "${RING:-ring.py}"
