#!/bin/bash
#SBATCH -N1 -t 5
squeue -h -j $SLURM_JOB_ID -o 'self %i %T %N'
sbatch --parsable -N1 -t 5 -o follow.out --wrap 'echo followed by $(id -u)'
