#!/bin/bash
#SBATCH -J mpi-ring           # OpenMPI: mpirun starts its daemons with srun
#SBATCH -o openmpi-%j.out
#SBATCH -t 10
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1

mpirun.openmpi python3 "${RING:-ring.py}"
