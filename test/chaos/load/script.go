package load

import "strings"

// Script returns the script of the jobs, which write their lines into files of the directory.
func Script(directory string) string { return strings.ReplaceAll(script, "@DIRECTORY@", directory) }

// script is what every job runs: chaos.sh MILLISECONDS EXIT [steps]. Each task appends its
// lines to a file of its own, each with one write, so that they survive SIGKILL. It sleeps
// without starting a process.
const script = `#!/bin/bash
LC_ALL=C
case $3$SLURM_STEP_ID in
task*|[0-9]*) step=$SLURM_STEP_ID proc=$SLURM_PROCID ;;
*) step=batch proc=0 ;;
esac
file=@DIRECTORY@/job-$SLURM_JOB_ID.$step.$proc
say() {
	printf '%s at=%s job=%s array=%s task=%s restart=%s name=%s user=%s node=%s step=%s proc=%s gpus=%s pid=%s exit=%s\n' \
		"$1" "$EPOCHREALTIME" "$SLURM_JOB_ID" "$SLURM_ARRAY_JOB_ID" "$SLURM_ARRAY_TASK_ID" "${SLURM_RESTART_COUNT:-0}" \
		"$SLURM_JOB_NAME" "$USER" "${SLURMD_NODENAME:-$HOSTNAME}" "$step" "$proc" "$SLURM_JOB_GPUS" "$$" "${2:-0}" >>"$file"
}
exec {nap}<> <(:)
say start
now=${EPOCHREALTIME/./}
end=$((now + $1 * 1000))
[ "$3" != steps ] || srun "$0" "$1" 0 task
while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do
	read -rt 0.25 -u "$nap"
	say beat
done
say end "$2"
exit "$2"
`
