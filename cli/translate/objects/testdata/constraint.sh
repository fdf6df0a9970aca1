#!/bin/bash
#SBATCH --nodes=3 --constraint="[rack1|rack2]&skylake"
#SBATCH --prefer=ib --exclude=n[3-5] --nodelist=n1,n2
srun ./step
