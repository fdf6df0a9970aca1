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

// site is what the site runs around the job on this node. Every program of it
// runs as the job's user.
type site struct {
	wire.Site
	// ready is closed when the prolog is over; failed is valid from then on.
	ready  chan struct{}
	failed bool
}

// prologCode is the exit code of srun where a prolog failed: the low byte of
// Slurm's error.
const prologCode = 182

// newSite takes over what the welcome says. Scripts that come as text become
// files that only the user can read; each field is a path then.
func (a *Agent) newSite() (*site, error) {
	s := &site{ready: make(chan struct{})}
	if a.welcome.Site == nil {
		close(s.ready)
		return s, nil
	}
	s.Site = *a.welcome.Site
	dir := filepath.Join(a.dir, "site")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("scripts of the site: %w", err)
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
			return nil, fmt.Errorf("scripts of the site: %w", err)
		}
		if err := os.Chmod(path, 0o700); err != nil { // whatever the umask says
			return nil, fmt.Errorf("scripts of the site: %w", err)
		}
		*text = path
	}
	return s, nil
}

// welcomeSite is what the site said, texts as they came.
func (a *Agent) welcomeSite() wire.Site {
	if a.welcome.Site == nil {
		return wire.Site{}
	}
	return *a.welcome.Site
}

// prolog runs the site's prolog and tells the cluster of a failure. Steps wait
// for it.
func (a *Agent) prolog(ctx context.Context) {
	s := a.site
	select {
	case <-s.ready:
		return // there is none
	default:
	}
	defer close(s.ready)
	if err := a.runScript(ctx, s.Prolog, "prolog_slurmd"); err != nil {
		s.failed = true
		a.log.Error("the site's prolog failed", "error", err)
		if ctx.Err() == nil {
			a.tellScript(wire.ReportProlog, err)
		}
	}
}

// epilog runs the site's epilog. more are variables beside those of the prolog.
func (a *Agent) epilog(more ...string) {
	if err := a.runScript(context.Background(), a.site.Epilog, "epilog_slurmd", more...); err != nil {
		a.log.Error("the site's epilog failed", "error", err)
		a.tellScript(wire.ReportEpilog, err)
	}
}

func (a *Agent) tellScript(kind string, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	r := &wire.Report{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt, Kind: kind, Message: why.Error()}
	if _, err := a.api.Report(ctx, r); err != nil {
		a.log.Warn("report not taken", "kind", kind, "error", err)
	}
}

// runScript runs a prolog or epilog to its end. Its output goes to the agent's
// log, which is the container's.
func (a *Agent) runScript(ctx context.Context, path, script string, more ...string) error {
	if path == "" {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	p, err := a.spawn.Start(&spawn.Spec{
		Path: path, Args: []string{path}, Dir: "/", Env: append(a.scriptEnv(script), more...),
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
	p.Signal(syscall.SIGKILL) //nolint:errcheck // it may be over
	<-p.Done()
	a.spawn.EndSession(p.PID, time.Second)
	return err
}

// scriptEnv is what Slurm tells prolog and epilog of the job.
func (a *Agent) scriptEnv(script string) []string {
	w := a.welcome
	of := map[string]bool{}
	for _, name := range []string{
		"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_GID", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_JOB_UID",
		"SLURM_JOB_USER", "SLURM_NODELIST", "SLURM_CLUSTER_NAME", "SLURMD_NODENAME", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
		"GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ACCOUNT",
	} {
		of[name] = true
	}
	list := env.Without(env.Batch(a.input), func(name string) bool { return !of[name] })
	return append(list,
		"SLURM_SCRIPT_CONTEXT="+script, "SLURM_UID="+strconv.FormatInt(w.UID, 10), "SLURM_JOB_RESTART_COUNT="+strconv.Itoa(int(w.Restarts)),
		"SLURM_JOB_WORK_DIR="+a.job.Batch.WorkDir, "HOME="+w.Home, "USER="+w.User, "PATH="+defaultPath)
}

// exitEnv is what an epilog is told of the job's end.
func exitEnv(r *wire.Report) []string {
	status := r.Status<<8 | r.Signal
	return []string{
		"SLURM_JOB_EXIT_CODE=" + strconv.Itoa(int(status)), fmt.Sprintf("SLURM_JOB_EXIT_CODE2=%d:%d", r.Status, r.Signal),
		"SLURM_JOB_DERIVED_EC=" + strconv.Itoa(int(r.Derived<<8|r.DerivedSignal)),
	}
}

// refuseLaunch ends the tasks of a launch to a node whose prolog failed, in the
// words of Slurm's srun.
func (a *Agent) refuseLaunch(conn *step.Conn, l *step.Launch) {
	const why = "Job prolog failed"
	line := fmt.Sprintf("srun: error: Task launch for StepId=%d.%d failed on node %s: %s\nsrun: error: Application launch failed: %s\nsrun: Job step aborted\n",
		l.JobID, l.Step.ID, a.node.Name, why, why)
	err := conn.Send(&step.Frame{Type: step.FrameNotice, Task: step.AllTasks, Data: []byte(line)})
	for i := range l.Nodes {
		if err == nil {
			err = conn.SendJSON(step.FrameExit, step.Exit{Tasks: l.Nodes[i].Tasks, Status: prologCode << 8})
		}
	}
	if err == nil {
		err = conn.Send(&step.Frame{Type: step.FrameDone})
	}
	if err != nil {
		conn.Close()
	}
}

// awaitProlog returns when steps may run here; false: they never may.
func (a *Agent) awaitProlog(ctx context.Context) bool {
	select {
	case <-a.site.ready:
		return !a.site.failed
	case <-ctx.Done():
		return false
	}
}
