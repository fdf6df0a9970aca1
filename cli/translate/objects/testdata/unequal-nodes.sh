#!/bin/bash
#SBATCH --nodes=2 --ntasks=5
srun ./step
