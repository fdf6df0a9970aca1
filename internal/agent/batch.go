package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/agent/coord"
	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// launchFailure is the signal of Slurm's exit code 0:53, that of a job whose
// files could not be opened.
const launchFailure = 53

// reportTime bounds how long the last report may take; the termination log
// has it too.
const reportTime = 20 * time.Second

// batch is the run of one batch script.
type batch struct {
	a     *Agent
	files *files
	proc  *spawn.Process // nil: an allocation without a script
	ended chan struct{}  // closed when the script is over and reaped

	warning *warning

	// hook runs the site's programs around the script; nil: there is no script.
	// environ is the script's environment; nil: it was not started.
	hook    *launch.TaskScripts
	environ []string

	reason     string      // why the job was ended, for what follows wait
	terminated chan string // the reason; at most one is ever sent
	stopped    bool        // SIGTERM came first; for wait and what follows it
	completed  chan int32  // the exit code of a job without a script, once
	reports    chan *wire.Report
	next       bool // another job may come, as the answer to the last report says; for tell, and after it
	swept      bool // no process of the job is left
}

// runBatch runs the batch script and everything that goes with it, and returns
// the agent's exit code. next: nothing of the job is left, its end is on record,
// and another one may come.
func (a *Agent) runBatch(ctx context.Context) (code int, next bool) {
	b := &batch{
		a: a, ended: make(chan struct{}), terminated: make(chan string, 1), completed: make(chan int32, 1),
		reports: make(chan *wire.Report, 4),
	}
	told := make(chan struct{})
	go b.tell(told)
	r := b.run(ctx)
	r.JobID, r.Attempt, r.End = a.welcome.JobID, a.welcome.Attempt, time.Now().UnixNano()
	a.last(r)
	a.epilog(exitEnv(r)...)
	r.Steps = a.steps.close(reportTime / 2) // with the end, for the job's record
	b.reports <- r
	close(b.reports)
	select {
	case <-told:
		next = b.next
	case <-time.After(reportTime):
		a.log.Warn("the end of the job could not be reported")
	}
	if r.Kind == wire.ReportFailed {
		return 1, false
	}
	if r.Signal != 0 {
		return 128 + int(r.Signal), next && b.swept
	}
	return int(r.Status), next && b.swept
}

// tell sends the reports in their order.
func (b *batch) tell(done chan<- struct{}) {
	defer close(done)
	for r := range b.reports {
		ctx, cancel := context.WithTimeout(context.Background(), reportTime)
		next, err := b.a.api.Report(ctx, r)
		cancel()
		if b.next = next; err != nil {
			b.a.log.Warn("report not taken", "kind", r.Kind, "error", err)
		}
	}
}

// run is the script from its start until nothing of the job is left.
func (b *batch) run(ctx context.Context) *wire.Report {
	a := b.a
	start := time.Now()
	ooms := oomKills()
	if err := b.start(); err != nil {
		a.log.Error("the batch script did not start", "error", err)
		a.coord.Kill()
		b.files.close()
		return &wire.Report{Kind: wire.ReportFailed, Signal: launchFailure, Message: err.Error(), Start: start.UnixNano()}
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	b.warning = b.newWarning(a.welcome.EndTime)
	defer b.warning.stop()
	go b.obey(watch)
	b.batchStep(start, nil)
	if b.proc != nil {
		a.coord.SetBatchUsage(func(gpus bool) *step.Usage { return b.batchUsage(start, gpus) })
	}
	a.coord.SetOutput(b.files.outPath, b.files.errPath)
	status := b.wait(ctx)
	b.batchStep(start, &status)
	if b.environ != nil {
		b.hook.Epilog("slurm", a.site.TaskEpilog, b.environ, 0)
	}
	b.sweep()
	if ooms = oomKills() - ooms; ooms > 0 {
		b.files.say(launch.OOMLine(fmt.Sprintf("%d.batch", a.welcome.JobID), ooms))
	}
	b.files.close()
	a.coord.OutputComplete()
	r := &wire.Report{
		Kind: wire.ReportEnded, Start: start.UnixNano(), OutOfMemory: ooms > 0,
	}
	r.Derived, r.DerivedSignal = a.coord.Derived()
	r.Stopped = b.stopped
	if lost := a.coord.Lost(); lost.Node != "" {
		r.LostNode, r.LostFor = lost.Node, int64(time.Since(lost.At))
	}
	if status.Signaled() {
		r.Signal = int32(status.Signal())
	} else {
		r.Status = int32(status.ExitStatus())
	}
	return r
}

// start opens the files and starts the script. With an error the job fails.
func (b *batch) start() error {
	a := b.a
	// Where the prolog failed the cluster takes the job back.
	if len(a.welcome.Script) == 0 || a.site.failed {
		b.files = &files{}
		return nil
	}
	dir := a.job.Batch.WorkDir
	var err error
	if b.files, err = openFiles(a.log, &a.job, a.names(), dir); err != nil {
		return err
	}
	script, err := inflate(a.welcome.Script)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	submitted, err := inflate(a.welcome.Environment)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	environ := env.Split(submitted)
	environ = env.Merge(b.loginEnv(environ), environ...)
	path, err := a.writeScript(script)
	if err != nil {
		return err
	}
	if why := enterable(dir); why != nil {
		b.files.say(fmt.Sprintf("slurmstepd: error: couldn't chdir to `%s': %s: going to /tmp instead", dir, why))
		dir = "/tmp"
	}
	if inside := a.job.Batch.Container["workdir"]; inside != "" {
		dir = inside
	}
	environ = env.Merge(a.batchEnv(environ), "PWD="+dir)
	b.hook = &launch.TaskScripts{Spawn: a.spawn, Dir: dir, Error: b.files.write, Print: b.files.echo}
	var code int
	if environ, code = b.hook.Prolog("TaskProlog", "slurm", a.site.TaskProlog, environ); code != 0 {
		b.proc = spawn.Ended(syscall.WaitStatus(code << 8))
		return nil
	}
	b.environ = environ
	b.proc, err = a.spawn.Start(&spawn.Spec{
		Path: path, Args: append([]string{path}, a.job.Batch.Args...), Dir: dir, Env: environ, Files: b.files.stdio(),
		Rlimits: a.job.Batch.Rlimits, Umask: -1, NeedPID: true, Helper: a.config.Helper,
	})
	if err == nil {
		return nil
	}
	// As in Slurm, a script that cannot be executed is one that ran and failed.
	b.files.say(spawn.ExecError(path, err))
	b.proc = spawn.Ended(syscall.WaitStatus(spawn.ExecCode(err) << 8))
	return nil
}

// writeScript puts the script where only this user can read it, under the name
// that $0 has in Slurm.
func (a *Agent) writeScript(script []byte) (string, error) {
	dir := filepath.Join(a.dir, fmt.Sprintf("job%05d", a.welcome.JobID))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	path := filepath.Join(dir, "slurm_script")
	if err := os.WriteFile(path, script, 0o700); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	return path, os.Chmod(path, 0o700) // whatever the umask says
}

// wait returns when the script is over. Where the job is ended from outside it
// gives the script its time first.
func (b *batch) wait(ctx context.Context) syscall.WaitStatus {
	var done <-chan syscall.WaitStatus
	if b.proc != nil {
		done = b.proc.Done()
	}
	kubelet := ctx.Done()
	grace := time.Duration(b.a.welcome.KillWait) * time.Second
	var kill <-chan time.Time
	var deadline time.Time // of the script, once its end is announced
	for {
		select {
		case status := <-done:
			close(b.ended)
			return status
		case <-kubelet:
			kubelet = nil
			// The kubelet kills in KillWait seconds; the report is to be out
			// by then.
			grace = grace * 3 / 4
			if deadline.IsZero() {
				b.stopped = true
				b.terminate("CANCELLED")
			} else if time.Now().Add(grace).Before(deadline) {
				kill = time.After(grace)
			}
		case code := <-b.completed:
			if b.proc == nil {
				close(b.ended)
				return syscall.WaitStatus(code << 8)
			}
		case reason := <-b.terminated:
			if !deadline.IsZero() {
				continue
			}
			b.reason = reason
			b.announce(reason, grace)
			deadline = time.Now().Add(grace)
			if b.proc == nil {
				close(b.ended)
				return syscall.WaitStatus(syscall.SIGTERM)
			}
			kill = time.After(grace)
		case <-kill:
			b.session(syscall.SIGKILL)
		}
	}
}

// terminate asks for the end of the job; only the first reason counts.
func (b *batch) terminate(reason string) {
	select {
	case b.terminated <- reason:
	default:
	}
}

// complete ends a job without a script; only the first exit code counts.
func (b *batch) complete(code int32) {
	select {
	case b.completed <- code & 0xff:
	default:
	}
}

// announce begins the end of the job: the steps, the notice, the script.
func (b *batch) announce(reason string, grace time.Duration) {
	a := b.a
	endReason := coord.ReasonOfState(reason)
	a.coord.Terminate(endReason, int32(grace/time.Second))
	b.files.say(fmt.Sprintf("slurmstepd: error: *** JOB %d ON %s CANCELLED AT %s%s ***",
		a.welcome.JobID, a.node.Name, stamp(), endReason.Suffix()))
	b.session(syscall.SIGCONT)
	b.session(syscall.SIGTERM)
}

// session signals the script and all that is in its session.
func (b *batch) session(sig syscall.Signal) {
	if b.proc == nil {
		return
	}
	select {
	case <-b.ended:
	default:
		spawn.Kill(sig, func(p spawn.Proc) bool { return p.Session == b.proc.PID })
	}
}

// sweep ends what the script left: steps in order, the rest at once.
func (b *batch) sweep() {
	a := b.a
	a.coord.Terminate(coord.Cancelled, a.welcome.KillWait)
	limit := time.Duration(a.welcome.KillWait)*time.Second + 10*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if a.coord.Wait(ctx) != nil {
		a.coord.Kill()
	}
	if b.proc != nil {
		leaveTime(b.proc.PID)
	}
	b.swept = spawn.KillAll(10*time.Second, spawn.Everything)
}

// leaveTime lets the sruns of a script that was ended write their last lines.
func leaveTime(session int) {
	deadline := time.Now().Add(300 * time.Millisecond)
	for time.Now().Before(deadline) {
		if spawn.Kill(0, func(p spawn.Proc) bool { return p.Session == session && spawn.Program(p.PID) == "srun" }) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// inflate unpacks a zstd block of a BatchJob; nil stays nil.
func inflate(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}
