#!/bin/bash
# The pictures of the terminal UI: real screens of a local cluster. To take them
# again (tmux from Debian, svg-term-cli from npm), in the root directory after
# `make build`:
#
#	docs/session/screens.sh
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
export PATH=$top/bin:$PATH KUBECONFIG=$work/state/kubeconfig HOME=$work LANG=C.UTF-8 COLORTERM=truecolor
tmux() { command tmux -S "$work/tmux" -f /dev/null "$@"; }
trap 'tmux kill-server 2>/dev/null; berth down --state-dir "$work/state" >/dev/null 2>&1; rm -rf "$work"' EXIT
cd "$work" || exit 1

# see TEXT waits until the screen shows it.
see() {
	for _ in $(seq 600); do
		tmux capture-pane -p | grep -qF -- "$1" && return
		sleep 0.1
	done
	echo "no $1 on the screen" >&2
	exit 1
}

# picture NAME writes the screen as an SVG.
picture() {
	sleep 0.5
	{
		echo '{"version": 2, "width": 100, "height": 24}'
		tmux capture-pane -pe | python3 -c 'import json,sys; print(json.dumps([0.1, "o", sys.stdin.read().rstrip("\n").replace("\n", "\r\n")]))'
		echo '[0.2, "o", ""]'
	} >screen.cast
	svg-term --in screen.cast --out "$top/docs/session/$1.svg" --window --no-cursor --at 150
}

berth up --nodes 4 --cpus 8 --state-dir state >/dev/null
job() { sbatch --parsable "$@"; }
job -N2 --exclusive -t 2:00:00 -J cfd-wing --wrap 'for i in $(seq 5000); do echo "step $i  residual 1.$RANDOM e-5"; sleep 1; done'
job -n4 -t 30 -J assemble --wrap 'sleep 1000'
job -n2 -t 45 -J mesh --wrap 'sleep 1000'
solve=$(job -N4 --exclusive -t 4:00:00 -J solve --wrap 'srun hostname')
job -a 0-199%4 -t 10 -J sweep --wrap 'sleep 60'
job -d "afterok:$solve" -t 10 -J report --wrap true
job -H -t 1:00:00 -J later --wrap true
tmux new-session -d -x 100 -y 24 'squeue --tui --no-mouse'
see '(Resources)'
see '(Dependency)'
see 'R 4'
picture tui-queue
tmux send-keys /solve Enter 4
see 'It should start'
picture tui-why
tmux send-keys Escape
see /solve
tmux send-keys C-l 7
see planned
picture tui-timeline
