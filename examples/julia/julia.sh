#!/bin/bash
#SBATCH -J julia              # Julia: the program in the batch script, its workers in a step
#SBATCH -o julia-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

julia "${1:-slurm_cluster_manager.jl}"
