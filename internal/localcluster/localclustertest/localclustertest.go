// Package localclustertest starts a whole Berth cluster in the process of a test.
// Linking it links Kubernetes: use it in few packages.
package localclustertest

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"

	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/parts"
)

// Cluster is a running cluster.
type Cluster struct {
	localcluster.Info
	// StateDir is the state directory; BinDir has the agent and the commands.
	StateDir, BinDir string
	// Admin is an administrator's client configuration.
	Admin *rest.Config
}

// Option changes the configuration of the cluster.
type Option func(*localcluster.Config)

// Nodes sets n nodes n1, n2, ... with that number of CPUs and MiB of memory each.
func Nodes(n int, cpus, memory int64) Option {
	return func(c *localcluster.Config) {
		c.Nodes = nil
		for i := range n {
			c.Nodes = append(c.Nodes, localcluster.Node{
				Name: "n" + string(rune('1'+i)), CPUs: cpus, Memory: memory, Sockets: 1, Cores: int(cpus), Threads: 1,
			})
		}
	}
}

// WithoutScheduler starts no scheduler; localcluster.SchedulerArgs has the flags for
// one outside.
func WithoutScheduler(c *localcluster.Config) { c.Parts.Scheduler = nil }

// Start starts a cluster of three nodes with four CPUs and 2000 MB each, and stops it
// at the end of the test. Only one may run at a time, because Kubernetes' parts have
// global state. Agent and commands come from the directory bin/ of the source tree, if it
// is built.
func Start(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	admin, err := localcluster.Current()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: other users must be able to access it.
	state, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(state, "log"))
	if err != nil {
		t.Fatal(err)
	}
	handler := slog.NewTextHandler(log, nil)
	klog.SetSlogLogger(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	c := localcluster.Config{
		StateDir: filepath.Join(state, "cluster"), BinDir: binDir(t), Admin: admin, Parts: parts.All(),
		Progress: func(s string) { t.Log(s) }, Stopping: func() {}, Log: slog.New(handler), Now: time.Now,
	}
	Nodes(3, 4, 2000)(&c)
	for _, o := range options {
		o(&c)
	}
	if err := errors.Join(os.Chmod(state, 0o711), os.Mkdir(c.StateDir, 0o711)); err != nil {
		t.Fatal(err)
	}
	return run(t, c, state)
}

func run(t testing.TB, c localcluster.Config, directory string) *Cluster {
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan localcluster.Info, 1), make(chan error, 1)
	go func() {
		ended <- localcluster.Run(ctx, c, false, func(i localcluster.Info) { ready <- i })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the cluster ended: %v", err)
		}
		if t.Failed() {
			t.Logf("state kept in %s", directory)
			return
		}
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	select {
	case info := <-ready:
		rc, err := clientcmd.BuildConfigFromFlags("", info.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		rc.QPS, rc.Burst = 1000, 2000
		return &Cluster{Info: info, StateDir: c.StateDir, BinDir: c.BinDir, Admin: rc}
	case err := <-ended:
		ended <- nil
		t.Fatalf("starting the cluster: %v (log in %s)", err, directory)
		return nil
	}
}

// binDir returns bin/ of the source tree that this file belongs to.
func binDir(t testing.TB) string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", "..", "bin")
	if _, err := os.Stat(filepath.Join(dir, "agent")); errors.Is(err, fs.ErrNotExist) {
		t.Log("bin/agent is not built; pods of jobs will not start")
	}
	return filepath.Clean(dir)
}
