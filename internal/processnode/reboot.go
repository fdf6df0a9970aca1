package processnode

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/processnode/registration"
)

// newBootID returns a random UUID, as in /proc/sys/kernel/random/boot_id.
func newBootID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// followReboots restarts nodes for which there is a file, until ctx ends.
func (m *manager) followReboots(ctx context.Context) {
	tick := time.NewTicker(cloudInterval)
	defer tick.Stop()
	for {
		files, _ := os.ReadDir(m.cfg.RebootDir) // it exists once a reboot has been requested
		for _, f := range files {
			if err := os.Remove(filepath.Join(m.cfg.RebootDir, f.Name())); err != nil {
				m.log("reboot of node %s: %v", f.Name(), err)
				continue
			}
			m.requestReboot(f.Name())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// requestReboot restarts the node if it runs.
func (m *manager) requestReboot(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.reboots[node]; c != nil {
		select {
		case c <- struct{}{}:
		default: // one is requested already
		}
	}
}

// keepRunning keeps the registered node alive until ctx ends. When it reboots, its pods end, and
// it registers again with another boot ID.
func (m *manager) keepRunning(ctx context.Context, r *registration.Registrar, n *NodeConfig, node *corev1.Node) {
	rebooted := make(chan struct{}, 1)
	m.setReboots(n.Name, rebooted)
	defer m.setReboots(n.Name, nil)
	for ctx.Err() == nil {
		alive, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Heartbeat(alive, n, node)
		}()
		select {
		case <-ctx.Done():
		case <-rebooted:
			m.log("node %s reboots", n.Name)
		}
		stop()
		<-ended
		if ctx.Err() == nil {
			node = m.restart(ctx, r, n, node)
		}
	}
}

func (m *manager) setReboots(node string, c chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.reboots, node); c != nil {
		m.reboots[node] = c
	}
}

// restart ends the pods of the node, and registers it with another boot ID.
func (m *manager) restart(
	ctx context.Context, r *registration.Registrar, n *NodeConfig, node *corev1.Node,
) *corev1.Node {
	for _, p := range m.stopPods(n.Name) {
		select {
		case <-p.done:
		case <-ctx.Done():
			return node
		}
	}
	n.BootID = newBootID()
	for {
		again, err := r.Register(ctx, n)
		if err == nil {
			return again
		}
		m.log("node %s: %v", n.Name, err)
		select {
		case <-ctx.Done():
			return node
		case <-time.After(time.Second):
		}
	}
}

// stopPods ends the pods of the node, as when the machine is switched off, and returns them.
func (m *manager) stopPods(node string) []*pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*pod
	for _, p := range m.pods {
		if p.spec.Spec.NodeName == node {
			p.nodeStopped()
			all = append(all, p)
		}
	}
	return all
}
