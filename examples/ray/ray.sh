#!/bin/bash
#SBATCH -J ray                # Ray: its head on the first node, a worker on each other node, then the program
#SBATCH -o ray-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --tasks-per-node=1
#SBATCH --cpus-per-task=2

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head=${nodes_array[0]}
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)
port=$((20000 + SLURM_JOB_ID % 10000))
export RAY_ADDRESS=$address:$port

srun --nodes=1 --ntasks=1 -w "$head" \
	ray start --head --node-ip-address="$address" --port="$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
until ray status --address="$RAY_ADDRESS" >/dev/null 2>&1; do sleep 0.5; done
for ((i = 1; i < SLURM_JOB_NUM_NODES; i++)); do
	srun --nodes=1 --ntasks=1 -w "${nodes_array[$i]}" \
		ray start --address="$RAY_ADDRESS" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
done

python3 -u job.py # the end of the job ends Ray as well
