package simnodes

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/agent/apiclient"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// pod is a pod of a simulated node and its agent.
type pod struct {
	*fleet
	object *corev1.Pod
	alive  context.Context //nolint:containedctx // its end is the deletion of the pod
	stop   context.CancelFunc
	api    *apiclient.Client
}

func newPod(ctx context.Context, f *fleet, o *corev1.Pod) *pod {
	p := &pod{fleet: f, object: o}
	p.alive, p.stop = context.WithCancel(ctx)
	return p
}

func newLease(name string) *coordinationv1.Lease {
	now, seconds := metav1.NowMicro(), int32(40)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}}
}

// run is the life of the pod: its agent runs until its job has ended or the pod is deleted.
func (p *pod) run() {
	p.report(func(s *corev1.PodStatus) {
		now := metav1.Now()
		s.Phase, s.StartTime, s.PodIP = corev1.PodRunning, &now, "192.0.2.1"
		s.Conditions = append(s.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	})
	if err := p.agent(); err != nil && p.alive.Err() == nil {
		fmt.Fprintf(os.Stderr, "simulated pod %s: %v\n", p.object.Name, err)
	}
	if p.alive.Err() == nil {
		p.report(func(s *corev1.PodStatus) {
			s.Phase = corev1.PodSucceeded
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: p.object.Spec.Containers[0].Name,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}}}
		})
	}
	<-p.alive.Done()
	p.remove()
}

// report changes the status of the pod, as its kubelet does, until that is done or the pod is
// being deleted.
func (p *pod) report(change func(*corev1.PodStatus)) {
	pods := p.client.CoreV1().Pods(p.object.Namespace)
	for ; p.alive.Err() == nil; pause(p.alive, 200*time.Millisecond) {
		now, err := pods.Get(p.alive, p.object.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != p.object.UID {
			return
		}
		if err != nil {
			continue
		}
		change(&now.Status)
		if _, err = pods.UpdateStatus(p.alive, now, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
}

// remove confirms the deletion of the pod.
func (p *pod) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.alive), time.Minute)
	defer cancel()
	o := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.object.UID}}
	for ; ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		err := p.client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, o)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
	}
}

// agent does what an agent does: it receives the job, runs it, reports its end, and goes on
// with the next job if it gets one.
func (p *pod) agent() error {
	if err := p.connect(); err != nil {
		return err
	}
	id, err := strconv.ParseInt(p.object.Labels[wire.LabelJobID], 10, 64)
	if err != nil {
		return err
	}
	attempt, err := strconv.ParseInt(p.object.Labels[wire.LabelAttempt], 10, 32)
	if err != nil {
		return err
	}
	index, err := control.PodIndex(p.object)
	if err != nil {
		return err
	}
	w, err := p.api.Hello(p.alive, &wire.Hello{JobID: id, Attempt: int32(attempt), Index: int32(index),
		Address: p.object.Name + ":1"})
	for err == nil {
		if index > 0 {
			<-p.alive.Done() // the batch host's agent runs the job
			return nil
		}
		var next bool
		if next, err = p.runJob(w); err != nil || !next {
			break
		}
		w, err = p.api.Next(p.alive, &wire.NextQuery{JobID: w.JobID, Attempt: w.Attempt})
	}
	var over *apiclient.FinalError
	if errors.As(err, &over) {
		return nil
	}
	return err
}

// connect makes the client of the agents' server from the pod's environment, with a token of
// the pod.
func (p *pod) connect() error {
	env := map[string]string{}
	for _, c := range p.object.Spec.Containers {
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
	}
	pem, err := base64.StdEncoding.DecodeString(env[wire.EnvAPICA])
	if err != nil {
		return err
	}
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM(pem)
	path := filepath.Join(p.Dir, string(p.object.UID))
	p.api = apiclient.New(strings.Split(env[wire.EnvAPI], ","), ca, path)
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{BoundObjectRef: &authv1.BoundObjectReference{
		Kind: "Pod", APIVersion: "v1", Name: p.object.Name, UID: p.object.UID}}}
	accounts := p.client.CoreV1().ServiceAccounts(p.object.Namespace)
	for {
		t, err := accounts.CreateToken(p.alive, p.object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err == nil {
			return os.WriteFile(path, []byte(t.Status.Token), 0o600)
		}
		if p.alive.Err() != nil || apierrors.IsNotFound(err) {
			return err
		}
		pause(p.alive, 200*time.Millisecond)
	}
}

// runJob runs a job: it writes what its script would write, and obeys the scheduler.
func (p *pod) runJob(w *wire.Welcome) (next bool, err error) {
	var j job.Job
	if err := json.Unmarshal(w.Job, &j); err != nil {
		return false, err
	}
	s := script{name: j.Name, welcome: w, output: p.Output}
	if len(j.Batch.Args) > 1 {
		ms, err1 := strconv.Atoi(j.Batch.Args[0])
		exit, err2 := strconv.Atoi(j.Batch.Args[1])
		if err := errors.Join(err1, err2); err != nil {
			return false, err
		}
		s.lasts, s.exit = time.Duration(ms)*time.Millisecond, exit
	}
	running, end := context.WithCancel(p.alive)
	defer end()
	var terminated atomic.Bool
	go p.obey(running, &s.stopped, func() { terminated.Store(true); end() })
	r := &wire.Report{JobID: w.JobID, Attempt: w.Attempt, Kind: wire.ReportEnded, Start: time.Now().UnixNano()}
	if err := s.run(running); err != nil {
		return false, err
	}
	if terminated.Load() {
		r.Signal = int32(syscall.SIGTERM)
	} else if r.Status = int32(s.exit); p.alive.Err() != nil {
		return false, p.alive.Err()
	}
	r.End = time.Now().UnixNano()
	return p.api.Report(p.alive, r)
}

// obey receives commands until ctx ends.
func (p *pod) obey(ctx context.Context, stopped *atomic.Bool, terminate func()) {
	var seen int64
	for ctx.Err() == nil {
		commands, err := p.api.Commands(ctx, seen)
		if err != nil { // the attempt is over
			return
		}
		for _, c := range commands {
			seen = max(seen, c.Seq)
			switch {
			case c.Kind == wire.CommandTerminate:
				terminate()
			case c.Kind == wire.CommandSignal && c.Every:
				stopped.Store(c.Signal == int32(syscall.SIGSTOP))
			}
		}
	}
}
