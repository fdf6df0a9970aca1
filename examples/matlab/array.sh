#!/bin/bash
#SBATCH -J matlab-array       # MATLAB: a process for each task of an array, each on one thread
#SBATCH -o matlab-array-%A_%a.out
#SBATCH -t 10
#SBATCH --array=1-3
#SBATCH --ntasks=1

matlab -nodisplay -singleCompThread -batch "task($SLURM_ARRAY_TASK_ID)"
