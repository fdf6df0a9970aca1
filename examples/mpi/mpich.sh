#!/bin/bash
#SBATCH -J mpi-ring           # MPICH: hydra starts its proxies with srun
#SBATCH -o mpich-%j.out
#SBATCH -t 10
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1

mpirun.mpich python3 "${RING:-ring.py}"
