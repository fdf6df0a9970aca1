#!/bin/bash
#SBATCH -J requeue            # a training that saves its state and returns to the queue before its time is over
#SBATCH -o requeue-%j.out
#SBATCH --open-mode=append
#SBATCH -t 0-2:00:00
#SBATCH --nodes=1
#SBATCH --requeue
#SBATCH --signal=B:USR1@120   # to this script alone, two minutes before the end

again() {
	echo "run ${SLURM_RESTART_COUNT:-0} returns to the queue"
	kill -USR1 "$srun"        # srun passes it on to the program, which saves its state
	wait "$srun"
	scontrol requeue "$SLURM_JOB_ID"
}
trap again USR1

srun python3 checkpoint.py &  # in the background: bash runs traps only between its commands
srun=$!
wait "$srun"
