#!/bin/bash
#SBATCH --ntasks=1 --mem=64G --job-name=coupled
#SBATCH --time=1:00:00
#SBATCH hetjob
#SBATCH --nodes=2 --ntasks-per-node=4 --gres=gpu:2
#SBATCH --time=30
srun ./step
