#!/bin/bash
#SBATCH --overcommit --nodes=2 --ntasks=64 --mem=4G
srun ./step
