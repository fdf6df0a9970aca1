package processnode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/identity"
	"github.com/berth-hpc/berth/internal/processnode/logfile"
	"github.com/berth-hpc/berth/internal/processnode/stream"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// Delays between restarts, as in a kubelet: none before the first restart, then
// backOffFirst, doubled up to backOffMax, and none again after a container has run for
// backOffReset.
const (
	backOffFirst = 10 * time.Second
	backOffMax   = 5 * time.Minute
	backOffReset = 10 * time.Minute
)

// container is a container of a pod, including its restarts.
type container struct {
	p    *pod
	spec *corev1.Container
	init bool
	dir  string

	// Guarded by p.mu.
	state, before corev1.ContainerState
	restarts      int32
	ready         bool
	started       bool
	process       *running // the running process; nil: none
	logs          []string // paths, the newest last; at most two
	log           *logfile.Log
	backOff       time.Duration
}

// running is one started process of a container.
type running struct {
	task    *task.Task
	group   *cgroups.Group
	streams *stream.Streams
	env     []string
	id      identity.Identity
	stop    chan string // receives the reason when a probe kills it
}

func newContainer(p *pod, spec *corev1.Container, init bool) *container {
	reason := "ContainerCreating"
	if len(p.spec.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	return &container{
		p: p, spec: spec, init: init, dir: filepath.Join(p.dir, "containers", spec.Name),
		state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

// run starts the container, and restarts it according to its restart policy, until it
// has ended permanently.
func (c *container) run() {
	for {
		if c.p.isStopped() {
			return
		}
		began := time.Now()
		r, err := c.start()
		var failed *configError
		if errors.As(err, &failed) {
			if !c.waitForConfig(failed) {
				return
			}
			continue
		}
		if err != nil {
			c.recordStartError(err)
		} else {
			c.supervise(r)
		}
		if !c.restart(time.Since(began)) {
			return
		}
	}
}

// configError is an error that may be resolved while the container waits.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }

// waitForConfig sets the error as the container's waiting reason, and returns after
// retryPause. It returns false if the pod ends before.
func (c *container) waitForConfig(e *configError) bool {
	c.p.mu.Lock()
	was := c.state.Waiting
	c.state = corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: e.Error()},
	}
	same := was != nil && was.Message == e.Error()
	c.p.mu.Unlock()
	if !same {
		c.p.event(corev1.EventTypeWarning, "Failed", e.Error())
		c.p.post()
	}
	select {
	case <-c.p.stopping:
		return false
	case <-time.After(retryPause):
		return true
	}
}

// recordStartError records the error of a command that could not be started.
func (c *container) recordStartError(err error) {
	reason := "RunContainerError"
	var start *task.StartError
	if errors.As(err, &start) {
		reason = "StartError"
	}
	now := metav1.Now()
	c.p.event(corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
	c.p.mu.Lock()
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: reason, Message: err.Error(), StartedAt: now, FinishedAt: now, ContainerID: c.id(),
	}}
	c.p.mu.Unlock()
	c.p.post()
}

// supervise runs the probes of a started container, waits for its end and records it.
func (c *container) supervise(r *running) {
	c.p.mu.Lock()
	c.process = r
	c.started = c.spec.StartupProbe == nil
	c.ready = c.started && c.spec.ReadinessProbe == nil
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.task.Started)}}
	c.p.mu.Unlock()
	c.p.post()
	endProbes := c.runProbes(r)
	c.p.m.wait.Go(func() { c.postStart(r) })
	c.wait(r)
	endProbes()
	r.streams.Wait()
	oom := r.group.OOMKills() > 0
	r.group.Kill()
	r.group.Remove()
	end := c.terminated(r, oom)
	c.p.mu.Lock()
	c.process, c.ready, c.started = nil, false, false
	c.state = corev1.ContainerState{Terminated: end}
	log := c.log
	c.p.mu.Unlock()
	_ = log.Close()
	if !c.p.isStopped() {
		c.p.post()
	}
}

// wait waits until the process has ended, and ends it if the pod ends or a probe fails.
func (c *container) wait(r *running) {
	select {
	case <-r.task.Done():
		return
	case <-c.p.stopping:
	case why := <-r.stop:
		c.p.event(corev1.EventTypeNormal, "Killing", why)
		c.terminate(r, time.After(c.p.grace()))
		return
	}
	c.terminate(r, nil)
}

// terminate sends SIGTERM to the process, and kills it after the grace period of the
// pod or its own.
func (c *container) terminate(r *running, own <-chan time.Time) {
	select {
	case <-c.p.killed:
	default:
		c.preStop(r)
		r.task.Signal(syscall.SIGTERM)
	}
	select {
	case <-r.task.Done():
	case <-c.p.killed:
	case <-own:
	}
	r.task.Kill()
	<-r.task.Done()
}

// restart reports whether the container must be started again, after the back-off delay.
func (c *container) restart(ran time.Duration) bool {
	p := c.p
	p.mu.Lock()
	failed := c.state.Terminated != nil && c.state.Terminated.ExitCode != 0
	again := !p.stopped
	switch p.spec.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		again = false
	case corev1.RestartPolicyOnFailure:
		again = again && failed
	default: // Always, which for an init container means until it succeeds
		again = again && (failed || !c.init)
	}
	if !again {
		p.mu.Unlock()
		return false
	}
	pause := c.backOff
	if ran > backOffReset {
		pause = 0
	}
	c.backOff = min(max(2*pause, backOffFirst), backOffMax)
	end := c.state
	if pause > 0 {
		c.before = end
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s", pause, c.spec.Name),
		}}
	}
	p.mu.Unlock()
	if pause > 0 {
		p.post()
		select {
		case <-p.stopping:
			p.mu.Lock()
			c.state = end
			p.mu.Unlock()
			return false
		case <-time.After(pause):
		}
	}
	p.mu.Lock()
	c.before = end
	c.restarts++
	p.mu.Unlock()
	return true
}

// terminated returns the state of a process that has ended.
func (c *container) terminated(r *running, oom bool) *corev1.ContainerStateTerminated {
	res := r.task.Result()
	end := &corev1.ContainerStateTerminated{
		ExitCode:   int32(res.Code),
		Signal:     0, // as in container runtimes, only the exit code tells the signal
		Reason:     "Completed",
		StartedAt:  metav1.NewTime(r.task.Started),
		FinishedAt: metav1.NewTime(res.Finished),
	}
	if res.Code != 0 {
		end.Reason = "Error"
		if oom {
			end.Reason = "OOMKilled"
		}
	}
	end.Message = c.terminationMessage(res.Code)
	c.p.mu.Lock()
	end.ContainerID = c.id()
	c.p.mu.Unlock()
	return end
}

// Limits of a termination message, as in a kubelet.
const (
	messageBytes    = 4096
	messageLogBytes = 2048
	messageLogLines = 80
)

func (c *container) terminationMessage(code int) string {
	data := beginning(filepath.Join(c.dir, "termination-log"), messageBytes)
	if len(data) > 0 || code == 0 || c.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return strings.ToValidUTF8(string(data), "?")
	}
	c.p.mu.Lock()
	log := c.log
	c.p.mu.Unlock()
	var b strings.Builder
	_ = log.Copy(c.p.ctx, logfile.Options{Tail: messageLogLines}, &b, &b)
	text := b.String()
	if len(text) > messageLogBytes {
		text = text[len(text)-messageLogBytes:]
	}
	return strings.ToValidUTF8(text, "?")
}

// beginning returns at most the first n bytes of a file that a container wrote, and
// nothing if it is not a regular file.
func beginning(path string, n int64) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(f, n)) // after an error: what was read
	return data
}

// id returns the id of the current run of the container. It is called with p.mu held.
func (c *container) id() string {
	return fmt.Sprintf("berth://%s-%s-%d", c.p.spec.UID, c.spec.Name, c.restarts)
}

func (c *container) succeeded() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

// status returns the status of the container; last: the pod has ended, and containers
// that never ran are reported as such. It is called with p.mu held.
func (c *container) status(last bool) corev1.ContainerStatus {
	started := c.started
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, State: c.state, LastTerminationState: c.before,
		Ready: c.ready, Started: &started, RestartCount: c.restarts,
	}
	if c.init {
		s.Ready = c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
	}
	if c.state.Waiting == nil {
		s.ImageID, s.ContainerID = HostImage, c.id()
	}
	if last && c.p.refusal != nil {
		s.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: c.p.refusal.reason, Message: c.p.refusal.message},
		}
	}
	return s
}
