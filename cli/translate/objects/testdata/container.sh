#!/bin/bash
#SBATCH --container-image="nvcr.io#nvidia/pytorch:24.01"
#SBATCH --container-mounts=/home/alice/data:/data:ro --container-workdir=/data
#SBATCH --container-env=LD_PRELOAD
srun ./step
