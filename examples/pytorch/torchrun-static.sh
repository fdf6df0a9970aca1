#!/bin/bash
#SBATCH -J torchrun-static    # PyTorch: a torchrun on each node, whose rank is the node's number in the job
#SBATCH -o torchrun-static-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --cpus-per-task=2

export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$(expr 20000 + "$(echo -n "$SLURM_JOB_ID" | tail -c 4)")

srun --nodes="$SLURM_NNODES" --ntasks-per-node=1 bash -c '
	torchrun --nnodes=$SLURM_NNODES --node_rank=$SLURM_NODEID --nproc_per_node=2 \
		--master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train.py'
