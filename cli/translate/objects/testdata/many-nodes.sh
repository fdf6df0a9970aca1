#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=8 --cpus-per-task=2
#SBATCH --mem-per-cpu=2G
#SBATCH --time=1-12:00:00
srun ./step
