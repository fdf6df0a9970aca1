#!/bin/bash
#SBATCH -J horovod            # Horovod: OpenMPI's mpirun finds the nodes of the job
#SBATCH -o horovod-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

mpirun -np "$SLURM_NTASKS" -bind-to none -map-by slot -x PATH python3 train.py
