#!/bin/bash
#SBATCH -J matlab             # MATLAB: a pool with a worker for each CPU of the job
#SBATCH -o matlab-%j.out
#SBATCH -t 10
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4

# Jobs that start at the same time must not share the directory of their pools.
export MATLAB_PREFDIR=${TMPDIR:-/tmp}/matlab-$SLURM_JOB_ID
mkdir -p "$MATLAB_PREFDIR"
trap 'rm -rf "$MATLAB_PREFDIR"' EXIT

matlab -nodisplay -batch pool
