#!/bin/bash
#SBATCH -J r-array            # R: a process for each task of an array
#SBATCH -o r-array-%A_%a.out
#SBATCH -t 10
#SBATCH --array=1-3
#SBATCH --ntasks=1

Rscript --vanilla task.R "$SLURM_ARRAY_TASK_ID"
