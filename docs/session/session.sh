#!/bin/bash
# The session of the README's picture. To record it again (asciinema from
# Debian, svg-term-cli from npm), in the root directory after `make build`:
#
#	asciinema rec -c docs/session/session.sh --cols 88 --rows 26 session.cast
#	svg-term --in session.cast --out docs/session/session.svg --window --no-cursor
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
export PATH=$top/bin:$PATH KUBECONFIG=$work/state/kubeconfig
trap 'berth down --state-dir "$work/state" >/dev/null 2>&1; rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$top/examples/ring/ring.sh" .

# Types a command as a person would, and runs it.
run() {
	printf '\033[1;32m$\033[0m '
	for ((i = 0; i < ${#1}; i++)); do
		printf '%s' "${1:i:1}"
		sleep 0.03
	done
	printf '\n'
	sleep 0.2
	eval "$1"
	sleep "${2:-1}"
}

run 'berth up --nodes 3 --cpus 4 --state-dir state' 0.5
run 'sinfo' 1
run 'cat ring.sh' 2
run 'sbatch ring.sh 400000' 0.7
run 'sbatch -N3 --exclusive -t 10 --wrap "srun hostname"' 0.3
run 'squeue' 8
run 'cat ring-1.out' 1
run 'cat slurm-2.out' 2
