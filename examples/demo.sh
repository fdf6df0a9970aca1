#!/bin/bash
# Brings up a local cluster, passes a token around a ring of ranks on three
# nodes, shows the queue and the output, and takes the cluster down again.
# Exits 0 only if the output is right.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-demo.XXXXXX")
state=$work/cluster
export PATH=$top/bin:$PATH
export KUBECONFIG=$state/kubeconfig

finish() {
	code=$?
	trap - EXIT
	berth down --state-dir "$state" >/dev/null 2>&1 || true
	if [ $code -eq 0 ]; then
		rm -rf "$work"
		echo "demo: the output is right"
	else
		echo "demo: FAILED; what it left is in $work" >&2
	fi
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
show() { say "$@"; "$@"; }

show berth up --nodes 3 --cpus 2 --state-dir "$state"
show sinfo
cp "$top/examples/ring/ring.sh" "$work/"
cd "$work"
say sbatch ring.sh 20000
line=$(sbatch ring.sh 20000) # rounds: some seconds, so that there is a queue to see
echo "$line"
id=${line##* }

# Shows the queue until the job has left it.
deadline=$((SECONDS + 120))
last=
while queue=$(squeue -j "$id" 2>/dev/null) && [ "$(wc -l <<<"$queue")" -gt 1 ]; do
	now=$(squeue -h -j "$id" -o '%t %N' 2>/dev/null || true)
	if [ "$now" != "$last" ]; then
		say squeue
		echo "$queue"
		last=$now
	fi
	[ $SECONDS -lt $deadline ] || { echo "demo: job $id did not end within 120 s" >&2; exit 1; }
	sleep 0.1
done

show cat "ring-$id.out"
for rank in 0 1 2; do
	grep -q "^rank $rank of 3 on n$((rank + 1))\b" "ring-$id.out"
done
grep -q '^ring of 3 ok$' "ring-$id.out"
show berth down --state-dir "$state"
