#!/bin/bash
#SBATCH --nodes=2-4 --ntasks-per-core=1 --hint=nomultithread
#SBATCH --distribution=cyclic:block --spread-job --switches=1@10:00 --contiguous
#SBATCH --extra-node-info=2:8:1
srun ./step
