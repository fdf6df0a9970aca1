package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// The suite "backlog" starts a cluster of simulated nodes without a scheduler and
// creates pods. Then it starts the process of Berth's scheduler, or kube-scheduler.
// Only scheduling happens in the meantime: the nodes do not report the pods as running.
var backlogMarks = marks{"<!-- backlog: written by make bench-kwok -->\n", "<!-- end of backlog -->\n"}

const backlogPods = 3000

var backlogs = []load{
	{"3,000 pods, gangs of 10", backlogPods, 10},
	{"3,000 pods, gangs of 100", backlogPods, 100},
	{"3,000 pods, gangs of 1,000", backlogPods, 1000},
	{"3,000 pods, each by itself", backlogPods, 0},
}

// cleared is the result of one backlog.
type cleared struct {
	rate  float64 // pods a second, from the start of the scheduler's process to the last binding
	steep float64 // the same from the first binding that was seen
	cpu   float64 // ms of the scheduler's processor time for each pod, until the last binding
	api   float64 // the same of the API server and its store
}

func benchBacklog(ctx context.Context, o options) error {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	busy := firstField("/proc/loadavg")
	text, err := backlogTable(ctx, bin, named(backlogs, o.only), min(podRounds, o.repeat))
	if err != nil {
		return err
	}
	text += overFleet(busy)
	return backlogMarks.publish(o.page, text)
}

// backlogTable measures every backlog with both, in turns, each in a cluster of its own.
func backlogTable(ctx context.Context, bin string, loads []load, rounds int) (string, error) {
	var t strings.Builder
	t.WriteString(sidesHead)
	for _, l := range loads {
		of := sides[cleared]{}
		for range rounds {
			if err := clearBacklog(ctx, bin, l, of); err != nil {
				return "", fmt.Errorf("backlog of %s: %w", l.what, err)
			}
		}
		of.row(&t, l.what+": bound a second, from the start of the process", "%.0f", "1.2", true,
			func(x cleared) float64 { return x.rate })
		of.row(&t, l.what+": bound a second, from the first binding", "%.0f", "", true,
			func(x cleared) float64 { return x.steep })
		of.row(&t, l.what+": the scheduler's processor time for each", "%.1f ms", "", false,
			func(x cleared) float64 { return x.cpu })
		of.row(&t, l.what+": the API server's and its store's", "%.1f ms", "", false,
			func(x cleared) float64 { return x.api })
	}
	return t.String(), nil
}

// clearBacklog measures a load with each scheduler.
func clearBacklog(ctx context.Context, bin string, l load, of sides[cleared]) error {
	for _, by := range []string{corev1.DefaultSchedulerName, wire.SchedulerName} {
		say("backlog of %s: %s", l.what, by)
		r, err := backlogOf(ctx, bin, l, by)
		if err != nil {
			return fmt.Errorf("%s: %w", by, err)
		}
		say("%+v", r)
		of[by] = append(of[by], r)
	}
	return nil
}

// backlogOf starts a cluster without a scheduler, creates the pods, and measures the
// scheduler's process.
func backlogOf(ctx context.Context, bin string, l load, by string) (cleared, error) {
	work, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return cleared{}, err
	}
	defer os.RemoveAll(work)
	state, local := filepath.Join(work, "berth-state"), filepath.Join(bin, "berth-local")
	if out, err := exec.CommandContext(ctx, local, "run", "--scheduler=external", "--nodes=0", "--state-dir",
		state).CombinedOutput(); err != nil {
		return cleared{}, fmt.Errorf("berth-local run: %w: %s", err, out)
	}
	defer func() { _ = exec.Command(local, "down", "--state-dir", state).Run() }()
	scheduler, err := schedulerOf(by, bin, state)
	if err != nil {
		return cleared{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &podBench{}
	if b.pid, err = processOf(state); err != nil {
		return cleared{}, err
	}
	if b.fleet, err = newFleet(filepath.Join(state, "kubeconfig"), podNodes); err != nil {
		return cleared{}, err
	}
	if err := b.start(ctx); err != nil {
		return cleared{}, err
	}
	if err := b.allow(ctx); err != nil {
		return cleared{}, err
	}
	if err := b.makeLoad(ctx, l, by); err != nil {
		return cleared{}, err
	}
	return b.clearedBy(ctx, scheduler, l.pods)
}

// schedulerOf is Berth's scheduler, or kube-scheduler as Kubernetes has it,
// without its limit of 50 requests a second.
func schedulerOf(by, bin, state string) (*exec.Cmd, error) {
	if by == corev1.DefaultSchedulerName {
		return exec.Command(filepath.Join(bin, "kube-scheduler"), "--kubeconfig="+filepath.Join(state, "kubeconfig"),
			"--leader-elect=false", "--secure-port=0", "--kube-api-qps=10000", "--kube-api-burst=10000"), nil
	}
	args, err := os.ReadFile(filepath.Join(state, "scheduler.args"))
	if err != nil {
		return nil, err
	}
	return exec.Command(filepath.Join(bin, "scheduler"), strings.Fields(string(args))...), nil
}

// clearedBy starts the scheduler and waits until all pods are bound.
func (b *podBench) clearedBy(ctx context.Context, scheduler *exec.Cmd, pods int) (cleared, error) {
	var said bytes.Buffer
	scheduler.Stdout, scheduler.Stderr = &said, &said
	began, server := time.Now(), processTime(b.pid)
	if err := scheduler.Start(); err != nil {
		return cleared{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		cancel(fmt.Errorf("the scheduler ended: %w", scheduler.Wait()))
		close(gone)
	}()
	err := b.await(ctx, began, pods)
	used, served := processTime(scheduler.Process.Pid), processTime(b.pid)-server
	why := context.Cause(ctx)
	_ = scheduler.Process.Kill()
	<-gone
	if err != nil {
		return cleared{}, fmt.Errorf("%w: %s", errors.Join(err, why), said.Bytes()[max(0, said.Len()-4000):])
	}
	first, last := b.span()
	n := float64(pods)
	return cleared{rate: n / last.Sub(began).Seconds(), steep: n / max(last.Sub(first).Seconds(), 1e-3),
		cpu: used.Seconds() * 1000 / n, api: served.Seconds() * 1000 / n}, nil
}
