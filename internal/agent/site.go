package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// site contains the scripts that the site runs before and after the job on this
// node. They run as the job's user.
type site struct {
	wire.Site
	// ready is closed when the prolog has ended; failed is valid from then on.
	ready  chan struct{}
	failed bool
}

// exitPrologFailed is the exit code of srun after a failed prolog: the low byte of
// Slurm's error number.
const exitPrologFailed = 182

// newSite returns the scripts of the welcome, with paths in all fields. Scripts
// that were given as text are written to files that only the user can read.
func (a *Agent) newSite() (*site, error) {
	s := &site{ready: make(chan struct{})}
	if a.welcome.Site == nil {
		close(s.ready)
		return s, nil
	}
	s.Site = *a.welcome.Site
	dir := filepath.Join(a.dir, "site")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the site's scripts: %w", err)
	}
	for name, text := range map[string]*string{
		"prolog": &s.Prolog, "epilog": &s.Epilog, "task-prolog": &s.TaskProlog, "task-epilog": &s.TaskEpilog,
		"srun-prolog": &s.SrunProlog, "srun-epilog": &s.SrunEpilog,
	} {
		if !strings.HasPrefix(*text, "#!") {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(*text), 0o700); err != nil {
			return nil, fmt.Errorf("the site's scripts: %w", err)
		}
		if err := os.Chmod(path, 0o700); err != nil { // regardless of the umask
			return nil, fmt.Errorf("the site's scripts: %w", err)
		}
		*text = path
	}
	return s, nil
}

// welcomeSite returns the site's scripts as in the welcome, including texts.
func (a *Agent) welcomeSite() wire.Site {
	if a.welcome.Site == nil {
		return wire.Site{}
	}
	return *a.welcome.Site
}

// prolog runs the site's prolog, and reports a failure to the cluster. Steps wait
// for it.
func (a *Agent) prolog(ctx context.Context) {
	s := a.site
	select {
	case <-s.ready:
		return // there is no prolog
	default:
	}
	defer close(s.ready)
	if err := a.runScript(ctx, s.Prolog, "prolog_slurmd"); err != nil {
		s.failed = true
		a.log.Error("the site's prolog failed", "error", err)
		if ctx.Err() == nil {
			a.reportScript(wire.ReportProlog, err)
		}
	}
}

// epilog runs the site's epilog. more are additional variables.
func (a *Agent) epilog(more ...string) {
	if err := a.runScript(context.Background(), a.site.Epilog, "epilog_slurmd", more...); err != nil {
		a.log.Error("the site's epilog failed", "error", err)
		a.reportScript(wire.ReportEpilog, err)
	}
}

// reportScript reports the failure of a script to the API role.
func (a *Agent) reportScript(kind string, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	r := &wire.Report{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt, Kind: kind, Message: cause.Error()}
	if _, err := a.api.Report(ctx, r); err != nil {
		a.log.Warn("cannot send report", "kind", kind, "error", err)
	}
}

// runScript runs a prolog or epilog to its end. Its output goes to the container's
// log. slurmContext is the value of SLURM_SCRIPT_CONTEXT.
func (a *Agent) runScript(ctx context.Context, path, slurmContext string, more ...string) error {
	if path == "" {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	p, err := a.spawn.Start(&spawn.Spec{
		Path: path, Args: []string{path}, Dir: "/", Env: append(a.scriptEnv(slurmContext), more...),
		Files: []*os.File{null, os.Stderr, os.Stderr}, Umask: -1,
	})
	if err != nil {
		return fmt.Errorf("%s: %s", path, strerror.Text(err))
	}
	limit := time.Duration(a.site.Timeout) * time.Second
	select {
	case status := <-p.Done():
		a.spawn.EndSession(p.PID, time.Second)
		if status != 0 {
			return fmt.Errorf("%s ended with status %d", path, step.ExitCode(uint32(status)))
		}
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(limit):
		err = fmt.Errorf("%s took longer than %v", path, limit)
	}
	p.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended
	<-p.Done()
	a.spawn.EndSession(p.PID, time.Second)
	return err
}

// scriptEnv returns the environment that Slurm gives to a prolog or epilog.
func (a *Agent) scriptEnv(slurmContext string) []string {
	w := a.welcome
	included := map[string]bool{}
	for _, name := range []string{
		"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_GID", "SLURM_JOB_NUM_NODES",
		"SLURM_JOB_PARTITION", "SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_NODELIST", "SLURM_CLUSTER_NAME",
		"SLURMD_NODENAME", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
		"ZE_AFFINITY_MASK", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ACCOUNT",
	} {
		included[name] = true
	}
	list := env.Without(env.Batch(a.input), func(name string) bool { return !included[name] })
	return append(list,
		"SLURM_SCRIPT_CONTEXT="+slurmContext, "SLURM_UID="+strconv.FormatInt(w.UID, 10),
		"SLURM_JOB_RESTART_COUNT="+strconv.Itoa(int(w.Restarts)),
		"SLURM_JOB_WORK_DIR="+a.job.Batch.WorkDir, "HOME="+w.Home, "USER="+w.User, "PATH="+defaultPath)
}

// exitEnv returns the variables of an epilog that describe how the job ended.
func exitEnv(r *wire.Report) []string {
	status := r.Status<<8 | r.Signal
	return []string{
		"SLURM_JOB_EXIT_CODE=" + strconv.Itoa(int(status)),
		fmt.Sprintf("SLURM_JOB_EXIT_CODE2=%d:%d", r.Status, r.Signal),
		"SLURM_JOB_DERIVED_EC=" + strconv.Itoa(int(r.Derived<<8|r.DerivedSignal)),
	}
}

// refuseLaunch fails the tasks of a launch to a node whose prolog failed, in the
// words of Slurm's srun.
func (a *Agent) refuseLaunch(conn *step.Conn, l *step.Launch) {
	const reason = "Job prolog failed"
	line := fmt.Sprintf("srun: error: Task launch for StepId=%d.%d failed on node %s: %s\n"+
		"srun: error: Application launch failed: %s\nsrun: Job step aborted\n",
		l.JobID, l.Step.ID, a.node.Name, reason, reason)
	err := conn.Send(&step.Frame{Type: step.FrameNotice, Task: step.AllTasks, Data: []byte(line)})
	for i := range l.Nodes {
		if err == nil {
			err = conn.SendJSON(step.FrameExit, step.Exit{Tasks: l.Nodes[i].Tasks, Status: exitPrologFailed << 8})
		}
	}
	if err == nil {
		err = conn.Send(&step.Frame{Type: step.FrameDone})
	}
	if err != nil {
		conn.Close()
	}
}

// waitForProlog waits for the end of the prolog. It returns false if steps must
// not run here.
func (a *Agent) waitForProlog(ctx context.Context) bool {
	select {
	case <-a.site.ready:
		return !a.site.failed
	case <-ctx.Done():
		return false
	}
}
