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

// launchFailure is the signal in Slurm's exit code 0:53 of a job whose files could not be
// opened.
const launchFailure = 53

// reportTimeout limits how long the last report may take. The termination log also
// contains it.
const reportTimeout = 20 * time.Second

// batch is the run of one batch script.
type batch struct {
	a     *Agent
	files *files
	proc  *spawn.Process // nil: an allocation without a script
	ended chan struct{}  // closed when the script has ended and was reaped

	warning *warning

	// scripts runs the site's programs before and after the script; nil: there is
	// no script. environ is the script's environment; nil: it was not started.
	scripts *launch.TaskScripts
	environ []string

	reason     string      // why the job was terminated; set by wait
	terminated chan string // receives the reason, at most once
	stopped    bool        // the kubelet's SIGTERM came first; set by wait
	completed  chan int32  // receives the exit code of a job without a script, at most once
	reports    chan *wire.Report
	next       bool // the API role may have another job for the pod; set by sendReports
	swept      bool // no process of the job is left; set by sweep
}

// runBatch runs the batch script, reports its end, and returns the agent's exit
// code. next is true if no process of the job is left, its end was recorded and
// another job may run in the pod.
func (a *Agent) runBatch(ctx context.Context) (code int, next bool) {
	b := &batch{
		a: a, ended: make(chan struct{}), terminated: make(chan string, 1), completed: make(chan int32, 1),
		reports: make(chan *wire.Report, 4),
	}
	reported := make(chan struct{})
	go b.sendReports(reported)
	r := b.run(ctx)
	r.JobID, r.Attempt, r.End = a.welcome.JobID, a.welcome.Attempt, time.Now().UnixNano()
	a.writeTerminationLog(r)
	a.epilog(exitEnv(r)...)
	r.Steps = a.steps.close(reportTimeout / 2) // sent with the end, for the job's record
	b.reports <- r
	close(b.reports)
	select {
	case <-reported:
		next = b.next
	case <-time.After(reportTimeout):
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

// sendReports sends the reports in order.
func (b *batch) sendReports(done chan<- struct{}) {
	defer close(done)
	for r := range b.reports {
		ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
		next, err := b.a.api.Report(ctx, r)
		cancel()
		if b.next = next; err != nil {
			b.a.log.Warn("cannot send report", "kind", r.Kind, "error", err)
		}
	}
}

// run runs the script until no process of the job is left, and returns the report
// of its end.
func (b *batch) run(ctx context.Context) *wire.Report {
	a := b.a
	start := time.Now()
	ooms := oomKills()
	if err := b.start(); err != nil {
		a.log.Error("the batch script did not start", "error", err)
		a.coord.Kill()
		b.files.close()
		return &wire.Report{
			Kind: wire.ReportFailed, Signal: launchFailure, Message: err.Error(), Start: start.UnixNano(),
		}
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	b.warning = b.newWarning(a.welcome.EndTime)
	defer b.warning.stop()
	go b.handleCommands(watch)
	b.reportBatchStep(start, nil)
	if b.proc != nil {
		a.coord.SetBatchUsage(func(gpus bool) *step.Usage { return b.batchUsage(start, gpus) })
	}
	a.coord.SetOutput(b.files.outPath, b.files.errPath)
	status := b.wait(ctx)
	b.reportBatchStep(start, &status)
	if b.environ != nil {
		b.scripts.Epilog("slurm", a.site.TaskEpilog, b.environ, 0)
	}
	b.sweep()
	if ooms = oomKills() - ooms; ooms > 0 {
		b.files.writeLine(launch.OOMLine(fmt.Sprintf("%d.batch", a.welcome.JobID), ooms))
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

// start opens the files and starts the script. An error fails the job.
func (b *batch) start() error {
	a := b.a
	// If the prolog failed, the cluster requeues the job.
	if len(a.welcome.Script) == 0 || a.site.failed {
		b.files = &files{}
		return nil
	}
	dir := a.job.Batch.WorkDir
	var err error
	if b.files, err = openFiles(a.log, &a.job, a.patterns(), dir); err != nil {
		return err
	}
	script, err := decompress(a.welcome.Script)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	submitted, err := decompress(a.welcome.Environment)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	environ := env.Split(submitted)
	environ = env.Merge(b.loginEnv(environ), environ...)
	path, err := a.writeScript(script)
	if err != nil {
		return err
	}
	if err := launch.CheckDir(dir); err != nil {
		line := fmt.Sprintf("slurmstepd: error: couldn't chdir to `%s': %s: going to /tmp instead", dir, err)
		b.files.writeLine(line + "\n" + line) // as in Slurm, once for the step and once for its task
		dir = "/tmp"
	}
	if inside := a.job.Batch.Container["workdir"]; inside != "" {
		dir = inside
	}
	environ = env.Merge(a.batchEnv(environ), "PWD="+dir)
	b.scripts = &launch.TaskScripts{Spawn: a.spawn, Dir: dir, Error: b.files.writeError, Print: b.files.writeOutput}
	var code int
	if environ, code = b.scripts.Prolog("TaskProlog", "slurm", a.site.TaskProlog, environ); code != 0 {
		b.proc = spawn.Ended(syscall.WaitStatus(code << 8))
		return nil
	}
	b.environ = environ
	b.proc, err = a.spawn.Start(&spawn.Spec{
		Path: path, Args: append([]string{path}, a.job.Batch.Args...), Dir: dir, Env: environ,
		Files:   b.files.stdio(),
		Rlimits: a.job.Batch.Rlimits, Umask: -1, NeedPID: true, Helper: a.config.Helper,
		CPUs: a.node.Allocated(a.welcome.Hosts[a.welcome.Index].CPUIDs),
	})
	if err == nil {
		return nil
	}
	// As in Slurm, a script that cannot be executed has failed with its errno.
	b.files.writeLine(spawn.ExecError(path, err))
	b.proc = spawn.Ended(syscall.WaitStatus(spawn.ExecCode(err) << 8))
	return nil
}

// writeScript writes the script to a file that only this user can read, under the
// name that $0 has in Slurm.
func (a *Agent) writeScript(script []byte) (string, error) {
	dir := filepath.Join(a.dir, fmt.Sprintf("job%05d", a.welcome.JobID))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	path := filepath.Join(dir, "slurm_script")
	if err := os.WriteFile(path, script, 0o700); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	return path, os.Chmod(path, 0o700) // regardless of the umask
}

// wait waits for the end of the script. If the job is terminated from outside, the
// script gets a grace period.
func (b *batch) wait(ctx context.Context) syscall.WaitStatus {
	var done <-chan syscall.WaitStatus
	if b.proc != nil {
		done = b.proc.Done()
	}
	kubelet := ctx.Done()
	grace := time.Duration(b.a.welcome.KillWait) * time.Second
	var kill <-chan time.Time
	var deadline time.Time // of the script, once it was terminated
	for {
		select {
		case status := <-done:
			close(b.ended)
			return status
		case <-kubelet:
			kubelet = nil
			// The kubelet kills the pod in KillWait seconds. The report must be
			// sent by then.
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
			b.terminateAll(reason, grace)
			deadline = time.Now().Add(grace)
			if b.proc == nil {
				close(b.ended)
				return syscall.WaitStatus(syscall.SIGTERM)
			}
			kill = time.After(grace)
		case <-kill:
			b.signalSession(syscall.SIGKILL)
		}
	}
}

// terminate requests the termination of the job. The first reason wins.
func (b *batch) terminate(reason string) {
	select {
	case b.terminated <- reason:
	default:
	}
}

// complete ends a job without a script. The first exit code wins.
func (b *batch) complete(code int32) {
	select {
	case b.completed <- code & 0xff:
	default:
	}
}

// terminateAll terminates the steps and the script, and writes Slurm's notice.
func (b *batch) terminateAll(reason string, grace time.Duration) {
	a := b.a
	endReason := coord.ReasonOfState(reason)
	a.coord.Terminate(endReason, int32(grace/time.Second))
	b.files.writeLine(fmt.Sprintf("slurmstepd: error: *** JOB %d ON %s CANCELLED AT %s%s ***",
		a.welcome.JobID, a.node.Name, timestamp(), endReason.Suffix()))
	b.signalSession(syscall.SIGCONT)
	b.signalSession(syscall.SIGTERM)
}

// signalSession sends a signal to the processes of the script's session.
func (b *batch) signalSession(sig syscall.Signal) {
	if b.proc == nil {
		return
	}
	select {
	case <-b.ended:
	default:
		spawn.Kill(sig, func(p spawn.Proc) bool { return p.Session == b.proc.PID })
	}
}

// sweep ends the steps and processes that the script has left: steps get their grace
// period, other processes are killed immediately.
func (b *batch) sweep() {
	a := b.a
	a.coord.Terminate(coord.Cancelled, a.welcome.KillWait)
	timeout := time.Duration(a.welcome.KillWait)*time.Second + 10*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if a.coord.Wait(ctx) != nil {
		a.coord.Kill()
	}
	if b.proc != nil {
		waitForSruns(b.proc.PID)
	}
	b.swept = spawn.KillAll(10*time.Second, spawn.Everything)
}

// waitForSruns waits a moment until the sruns of a terminated script have written their last
// lines.
func waitForSruns(session int) {
	isSrun := func(p spawn.Proc) bool { return p.Session == session && spawn.Program(p.PID) == "srun" }
	deadline := time.Now().Add(300 * time.Millisecond)
	for time.Now().Before(deadline) {
		if spawn.Kill(0, isSrun) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// decompress returns the contents of a zstd block of a BatchJob, or nil if it is empty.
func decompress(b []byte) ([]byte, error) {
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
