#!/bin/bash
#SBATCH --priority=500 --nice=10 --qos=high --account=chem --partition=long,main
#SBATCH --hold
srun ./step
