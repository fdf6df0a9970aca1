package processnode

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/processnode/registration"
)

// cloudInterval is the interval in which the files are read that say which nodes run.
const cloudInterval = 200 * time.Millisecond

// cloudFile returns the contents of the file that makes the node run; ok is false if there is
// none. If it is a number, that is how many CPUs the node has.
func (m *manager) cloudFile(n *NodeConfig) (contents []byte, ok bool) {
	data, err := os.ReadFile(filepath.Join(m.cfg.CloudDir, n.Name))
	return data, err == nil
}

// running returns the nodes that run now.
func (m *manager) running() map[string]*NodeConfig {
	out := map[string]*NodeConfig{}
	for name, n := range m.nodes {
		if _, runs := m.cloudFile(n); runs || !n.Cloud {
			out[name] = n
		}
	}
	return out
}

// followCloud registers the node while its file exists, until ctx ends.
func (m *manager) followCloud(ctx context.Context, r *registration.Registrar, n *NodeConfig) {
	tick := time.NewTicker(cloudInterval)
	defer tick.Stop()
	stop := func() {} // of the running node
	defer func() { stop() }()
	runs := false
	for {
		data, wanted := m.cloudFile(n)
		switch {
		case wanted && !runs:
			run, cancel := context.WithCancel(ctx)
			stop, runs = cancel, m.startCloud(run, r, n, data)
		case !wanted && runs:
			stop()
			runs = m.stopCloud(ctx, n) != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// startCloud registers the node, with the number of CPUs in data if there is one.
func (m *manager) startCloud(ctx context.Context, r *registration.Registrar, n *NodeConfig, data []byte) bool {
	config := *n
	if cpus, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64); err == nil && cpus > 0 {
		config.CPUs = cpus
	}
	config.BootID = newBootID()
	node, err := r.Register(ctx, &config)
	if err != nil {
		m.log("node %s: %v", n.Name, err)
		return false
	}
	m.wait.Go(func() { m.keepRunning(ctx, r, &config, node) })
	return true
}

// stopCloud ends the pods of the node and deletes its object, as when a machine is deleted.
func (m *manager) stopCloud(ctx context.Context, n *NodeConfig) error {
	m.stopPods(n.Name)
	err := m.cfg.Client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.log("node %s: %v", n.Name, err)
		return err
	}
	return nil
}
