package e2e

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	faulty "github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/faults"
	"github.com/berth-hpc/berth/test/chaos/history"
)

// controlFaults are the kinds of faults that hit the schedulers, the control plane, or the
// connections between them.
var controlFaults = []string{
	"leader", "standby", "both", "pause", "control-plane", "delays", "resets", "errors", "lost-answers", "watches",
	"gone", "silence",
}

const (
	faultPause     = 15 * time.Second // from one fault to the next, on average
	karpenterLives = 40 * time.Second // at most, before it is killed
)

// TestKarpenterUnderFaults: a thousand nodes (BERTH_KARPENTER_NODES) come for as many jobs and
// go when these have ended, while schedulers, control plane and Karpenter are killed and the
// API server's answers fail (BERTH_KARPENTER_SEED chooses when).
func TestKarpenterUnderFaults(t *testing.T) {
	many := manyNodesOf(t)
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("BERTH_KARPENTER_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	c := startFaultyCluster(t)
	d := &database{&cluster{bin: c.Bin, state: filepath.Dir(c.Kubeconfig())}, t, "", ""}
	k := newCloudOn(d, os.Getenv(envKarpenter), "kwok-")
	k.install(os.Getenv(envKarpenterModule))
	many.prepare(t, k)
	during(t, c, k, seed, func() {
		many.submit(t)
		many.awaitCome(t)
	})
	many.finish.Store(true)
	during(t, c, k, seed+1, func() { many.awaitHalfGone(t) })
	k.startKarpenter()
	many.awaitGone(t)
}

// startFaultyCluster starts a local cluster into which faults can be injected: its schedulers are
// processes of their own, behind a proxy.
func startFaultyCluster(t *testing.T) *faulty.Cluster {
	t.Helper()
	if os.Getenv(envKarpenter) == "" {
		t.Skip(whyNoKarpenter)
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "berth-karpenter-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := faulty.Start(t.Context(), faulty.Options{Bin: bin, Dir: dir, Nodes: 1, Standby: true, Log: t.Output()})
	t.Cleanup(func() {
		for _, left := range c.Stop() {
			t.Error(left)
		}
		if t.Failed() {
			t.Log("the logs are kept in", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// during injects faults and kills Karpenter while do runs. Afterwards no Karpenter runs.
func during(t *testing.T, c *faulty.Cluster, k *cloudCluster, seed uint64, do func()) {
	t.Helper()
	plan, err := faults.Plan(seed, time.Hour, faultPause, controlFaults)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
	}()
	wg.Go(func() {
		err := faults.Run(ctx, c, plan, func(f history.Fault) {
			t.Logf("%s %s %s, whole after %v", f.Begin.Format(time.TimeOnly), f.Kind, f.Target,
				f.End.Sub(f.Begin).Round(time.Millisecond))
		})
		if err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { k.karpenterThatDies(ctx, t, rand.New(rand.NewPCG(seed, 3))) })
	do()
}

// karpenterThatDies runs Karpenter until ctx is done. It is killed again and again, and started
// again, also if it ends by itself.
func (k *cloudCluster) karpenterThatDies(ctx context.Context, t *testing.T, r *rand.Rand) {
	for ctx.Err() == nil {
		alive, kill := context.WithTimeout(ctx, time.Duration(r.Int64N(int64(karpenterLives))))
		cmd := exec.CommandContext(alive, k.program)
		cmd.Env = k.programEnviron(karpenterEnv)
		begin := time.Now()
		err := k.logged(cmd, (*exec.Cmd).Run)
		t.Logf("%s Karpenter ended after %v: %v", time.Now().Format(time.TimeOnly), time.Since(begin).Round(time.Second), err)
		kill()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
