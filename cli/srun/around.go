package srun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// around runs --prolog or --epilog here, with the step's command as arguments,
// and returns its exit code. One that is not there is named and skipped.
func (r *run) around(program string) int {
	if program == "" {
		return 0
	}
	path := r.lookFor(program)
	if path == "" {
		r.o.say("Access denied for %s: No such file or directory", program)
		return 0
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{program}, r.parsed.Args...), Dir: r.dir,
		Env:    append(r.o.p.Environ(), "SLURM_JOB_ID="+strconv.FormatInt(r.req.JobID, 10)),
		Stdout: r.o.p.Out, Stderr: r.o.p.Err,
	}
	if r.created != nil {
		cmd.Env = append(cmd.Env, "SLURM_STEP_ID="+strconv.Itoa(int(r.created.StepID)))
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		r.o.say("Access denied for %s: %v", program, err)
		return 0
	}
	return cmd.ProcessState.ExitCode()
}

// prolog runs --prolog; the step is not asked for when it fails.
func (r *run) prolog() error {
	if code := r.around(r.parsed.Step.Prolog); code != 0 {
		return slurmerr.Newf(slurmerr.Refused, "srun prolog failed rc = %d. Aborting step.", code)
	}
	return nil
}

// epilog runs --epilog; what becomes of it changes nothing.
func (r *run) epilog() {
	if code := r.around(r.parsed.Step.Epilog); code != 0 {
		r.o.say("error: srun epilog failed status=%d", code)
	}
}

func (r *run) lookFor(program string) string {
	usable := func(path string) bool {
		st, err := os.Stat(path)
		return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	}
	if strings.Contains(program, "/") {
		if path := r.known(program); usable(path) {
			return path
		}
		return ""
	}
	for _, dir := range filepath.SplitList(r.o.p.Env("PATH")) {
		if path := filepath.Join(dir, program); usable(path) {
			return path
		}
	}
	return ""
}
