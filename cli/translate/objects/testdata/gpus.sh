#!/bin/bash
#SBATCH --nodes=2 --gres=gpu:a100:4,nic:1
#SBATCH --cpus-per-gpu=8 --mem-per-gpu=32G
srun ./step
