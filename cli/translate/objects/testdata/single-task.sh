#!/bin/bash
#SBATCH --job-name=one # a comment
#SBATCH --time=10 --mem=1G
srun ./step
