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

// around runs --prolog or --epilog here, or in their place the site's, with the
// step's command as arguments, and returns its exit code. "none" is neither. One that is not there is named and skipped.
func (r *run) around(program, site, context string) int {
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
		path = r.known(program)
	}
	if err := unix.Access(path, unix.R_OK|unix.X_OK); err != nil {
		r.o.say("Access denied for %s: %s", program, strerror.Text(err))
		return 0
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{program}, r.parsed.Args...), Dir: r.dir,
		Env:    append(r.o.p.Environ(), "SLURM_JOB_ID="+strconv.FormatInt(r.req.JobID, 10), "SLURM_SCRIPT_CONTEXT="+context),
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

// scriptFile puts the text of a script where only this user can read it, until
// remove. The path is empty after a failure that it has told.
func (r *run) scriptFile(text string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "srun-")
	if err == nil {
		path = filepath.Join(dir, "script")
		if err = os.WriteFile(path, []byte(text), 0o700); err == nil {
			return path, func() { os.RemoveAll(dir) }
		}
		os.RemoveAll(dir)
	}
	r.o.say("error: the site's script: %s", strerror.Text(err))
	return "", nil
}

// prolog runs --prolog; the step is not asked for when it fails.
func (r *run) prolog() error {
	if code := r.around(r.parsed.Step.Prolog, r.o.site.prolog, "prolog_srun"); code != 0 {
		return slurmerr.Newf(slurmerr.Refused, "srun prolog failed rc = %d. Aborting step.", code)
	}
	return nil
}

// epilog runs --epilog; what becomes of it changes nothing.
func (r *run) epilog() {
	if code := r.around(r.parsed.Step.Epilog, r.o.site.epilog, "epilog_srun"); code != 0 {
		r.o.say("error: srun epilog failed status=%d", code)
	}
}

// testExec looks for the program here, where SLURM_TEST_EXEC asks for that.
func (r *run) testExec() error {
	if r.o.p.Env("SLURM_TEST_EXEC") == "" || r.parsed.Step.MultiProg || r.lookFor(r.parsed.Args[0]) != "" {
		return nil
	}
	return slurmerr.New(slurmerr.Fatal, "Can not execute "+r.parsed.Args[0])
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
