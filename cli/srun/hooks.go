package srun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/strerror"
)

// runHook runs the program of --prolog or --epilog on this machine, or else the
// site's, with the step's command as arguments. It returns the exit code. With
// "none" it runs neither. A program that cannot be executed is reported and
// skipped.
func (r *run) runHook(program, site, context string) int {
	if program == "" {
		program = site
	}
	if program == "" || program == "none" {
		return 0
	}
	path := ""
	if strings.HasPrefix(program, "#!") {
		var remove func()
		if path, remove = r.scriptFile(program); path == "" {
			return 1
		}
		defer remove()
		program = path
	} else {
		path = r.absolute(program)
	}
	if err := unix.Access(path, unix.R_OK|unix.X_OK); err != nil {
		r.o.printf("Access denied for %s: %s", program, strerror.Text(err))
		return 0
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{program}, r.parsed.Args...), Dir: r.dir,
		Env: append(r.o.p.Environ(),
			"SLURM_JOB_ID="+strconv.FormatInt(r.req.JobID, 10), "SLURM_SCRIPT_CONTEXT="+context),
		Stdout: r.o.p.Out, Stderr: r.o.p.Err,
	}
	if r.created != nil {
		cmd.Env = append(cmd.Env, "SLURM_STEP_ID="+strconv.Itoa(int(r.created.StepID)))
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		r.o.printf("Access denied for %s: %v", program, err)
		return 0
	}
	return cmd.ProcessState.ExitCode()
}

// scriptFile writes the text of a script to a file that only this user can read;
// remove removes it. If that fails, it reports the error and returns no path.
func (r *run) scriptFile(text string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "srun-")
	if err == nil {
		path = filepath.Join(dir, "script")
		if err = os.WriteFile(path, []byte(text), 0o700); err == nil {
			return path, func() { os.RemoveAll(dir) }
		}
		os.RemoveAll(dir)
	}
	r.o.printf("error: the site's script: %s", strerror.Text(err))
	return "", nil
}

// prolog runs the prolog of srun. If it fails, the step must not be created.
func (r *run) prolog() error {
	if code := r.runHook(r.parsed.Step.Prolog, r.o.site.prolog, "prolog_srun"); code != 0 {
		return slurmerr.Newf(slurmerr.Refused, "srun prolog failed rc = %d. Aborting step.", code)
	}
	return nil
}

// epilog runs the epilog of srun. A failure has no consequence.
func (r *run) epilog() {
	if code := r.runHook(r.parsed.Step.Epilog, r.o.site.epilog, "epilog_srun"); code != 0 {
		r.o.printf("error: srun epilog failed status=%d", code)
	}
}

// testExec returns an error if the program does not exist on this machine and
// SLURM_TEST_EXEC is set.
func (r *run) testExec() error {
	if r.o.p.Env("SLURM_TEST_EXEC") == "" || r.parsed.Step.MultiProg ||
		r.findProgram(r.parsed.Args[0]) != "" {
		return nil
	}
	return slurmerr.New(slurmerr.Fatal, "Can not execute "+r.parsed.Args[0])
}

// findProgram returns the path of an executable program on this machine, or "".
func (r *run) findProgram(program string) string {
	usable := func(path string) bool {
		st, err := os.Stat(path)
		return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	}
	if strings.Contains(program, "/") {
		if path := r.absolute(program); usable(path) {
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
