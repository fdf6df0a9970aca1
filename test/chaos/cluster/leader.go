package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// Leader returns the scheduler that the lease names.
func (c *Cluster) Leader(ctx context.Context) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: "berth-scheduler"}
	if err := c.Client.Get(ctx, key, l); err != nil {
		return nil, err
	}
	if l.Spec.HolderIdentity != nil {
		for _, p := range c.Schedulers {
			if strings.Contains(*l.Spec.HolderIdentity, p.identity()) {
				return p, nil
			}
		}
	}
	return nil, errors.New("nobody leads")
}

// AwaitLeader waits until a scheduler other than that one leads.
func (c *Cluster) AwaitLeader(ctx context.Context, other *Process) (*Process, error) {
	for {
		if p, err := c.Leader(ctx); err == nil && p != other {
			return p, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leaderAddress is where the leader listens for agents.
func (c *Cluster) leaderAddress() (string, error) {
	p, err := c.Leader(context.Background())
	if err != nil {
		return "", err
	}
	return p.Address, nil
}

// switchboard replaces the Service that selects the leader's pod.
type switchboard struct {
	address  string
	find     func() (string, error)
	listener net.Listener

	mu    sync.Mutex
	last  string
	cut   bool                  // new connections are closed
	conns map[net.Conn]struct{} // those of the agents that are open
}

// open listens until close.
func (s *switchboard) open() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.listener = l
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go s.connect(in)
		}
	}()
	return nil
}

func (s *switchboard) close() { _ = s.listener.Close() }

// target returns where the leader listens, as far as it is known.
func (s *switchboard) target() string {
	address, err := s.find()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = address
	}
	return s.last
}

// connect relays a connection.
func (s *switchboard) connect(in net.Conn) {
	defer in.Close()
	if !s.add(in) {
		return
	}
	defer s.remove(in)
	out, err := net.DialTimeout("tcp", s.target(), 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// add notes a connection, unless connections are cut.
func (s *switchboard) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return false
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *switchboard) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// CutAgents closes the connections of all agents to the leader, and new ones for that long.
// It returns how many there were.
func (c *Cluster) CutAgents(d time.Duration) int {
	c.Count(Cut, "between agents and the leader")
	s := c.front
	s.mu.Lock()
	s.cut = true
	n := len(s.conns)
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
	return n
}
