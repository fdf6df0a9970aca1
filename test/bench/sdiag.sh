#!/bin/sh
# Prints a row about the Slurm that answers: what its backfill scheduler makes of
# the queue of "make bench-sched", JOBS jobs (10000) on full nodes of four CPUs.
# That Slurm must have nothing else to do, and MaxJobCount above JOBS; its jobs
# are cancelled in the end. PATH and SLURM_CONF say which Slurm it is.
set -eu
jobs=${1:-10000}
nodes=$(sinfo -h -o %D | awk '{s += $1} END {print s}')
name=berth-sdiag-$$
trap 'scancel -Q -n "$name"' EXIT
many() { # many COUNT SEED: sizes and time limits, the same with every call
	awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print 1 + int(8 * rand()), 1 + int(1440 * rand()) }'
}
many "$nodes" 1 | while read -r _ limit; do
	echo "-N1 --exclusive -t $limit"
done | xargs -P 8 -I{} sh -c 'sbatch -Q -J '"$name"' -o /dev/null {} --wrap "sleep 100000" >/dev/null'
until [ "$(squeue -h -t R -n "$name" -o x | wc -l)" -ge "$nodes" ]; do sleep 1; done
many "$jobs" 2 | while read -r size limit; do
	echo "-N$size -t $limit"
done | xargs -P 8 -I{} sh -c 'sbatch -Q -J '"$name"' -o /dev/null {} --wrap true >/dev/null'
sdiag --reset >/dev/null
# Two cycles of the backfill scheduler, the second with the whole queue.
until [ "$(sdiag | awk '/Backfilling stats/ {b = 1} b && /Total cycles/ {print $3}')" -ge 2 ]; do sleep 5; done
sdiag | awk -v jobs="$jobs" -v nodes="$nodes" -v version="$(sinfo --version)" '
	/Backfilling stats/ {b = 1}
	b && /Last cycle:/ {took = $3}
	b && /Last depth cycle:/ {depth = $4}
	END {printf "%s tests %d of %d such jobs on %d nodes in %.1f s.\n", version, depth, jobs, nodes, took / 1e6}'
