#!/bin/bash
#SBATCH --nodes=2 --exclusive --mem=0
srun ./step
