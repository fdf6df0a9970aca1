#!/bin/bash
#SBATCH --ntasks=3 --gpus-per-task=h100:2 --tres-per-task=cpu=4
srun ./step
