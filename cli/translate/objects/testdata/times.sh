#!/bin/bash
#SBATCH --begin=2030-01-02T03:04:05 --deadline=2030-01-03T03:04:05
#SBATCH --time=4:00:00 --time-min=1:00:00 --signal=B:USR1@120
#SBATCH --dependency=afterok:7:8_3,singleton --kill-on-invalid-dep=yes
#SBATCH --mail-type=END,FAIL,ARRAY_TASKS --mail-user=alice@example.org
srun ./step
