#!/bin/bash
#SBATCH --array=3-9:2,20%2
#SBATCH --output=logs/%A_%a.out
srun ./step
