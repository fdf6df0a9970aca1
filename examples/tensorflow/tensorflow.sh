#!/bin/bash
#SBATCH -J tensorflow         # TensorFlow: a worker for each task (tf_config.py or resolver.py)
#SBATCH -o tensorflow-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

srun python3 "${1:-tf_config.py}"
