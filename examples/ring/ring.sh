#!/bin/bash
#SBATCH -J ring               # a name for squeue
#SBATCH -o ring-%j.out
#SBATCH -t 0-2:00:00
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1

# Passes a token around three nodes. RING is the program (go build ./examples/ring).
srun "${RING:-ring}" "${1:-100}"
