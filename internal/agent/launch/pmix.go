package launch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// Timeouts of the start of a PMIx server, and of its exit after the end of its tasks.
const (
	pmixStartTimeout = 30 * time.Second
	pmixStopTimeout  = 2 * time.Second
)

// pmixServer is a process with OpenPMIx's server library that serves the tasks of
// a step on this node.
type pmixServer struct {
	outbox // frames for it
	proc   *spawn.Process
	conn   *step.Conn
	dir    string
	env    map[uint32][]string // of each task
	ended  chan struct{}       // closed when the process has ended
	over   chan struct{}       // closed by stop
	once   sync.Once           // of stop

	mu   sync.Mutex
	last string // last line that it has written
}

// newPMIx returns a server that is not started. It already queues frames.
func newPMIx() *pmixServer {
	return &pmixServer{
		outbox: newOutbox(), env: map[uint32][]string{}, ended: make(chan struct{}), over: make(chan struct{}),
	}
}

// start starts the server. Its exchanges with other nodes go through tree.
func (s *pmixServer) start(t *tasks, tree *Tree) error {
	if err := s.spawn(t); err != nil {
		return err
	}
	timer := time.AfterFunc(pmixStartTimeout, func() { s.conn.Close() })
	if err := s.exchangeJob(t); err != nil {
		return err
	}
	if !timer.Stop() {
		return errors.New("no answer")
	}
	go s.drainTo(s.conn, s.over)
	go s.read(t, tree)
	return nil
}

// spawn starts the server's process, connected by a socket pair.
func (s *pmixServer) spawn(t *tasks) (err error) {
	if s.dir, err = os.MkdirTemp(t.node.TempDir, "pmix-"); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "pmix"), os.NewFile(uintptr(pair[1]), "pmix")
	defer ours.Close()
	defer theirs.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		return err
	}
	s.conn = step.NewConn(c)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	go s.forwardErrors(t, r)
	defer w.Close()
	s.proc, err = t.node.Spawn.Start(&spawn.Spec{
		Path: t.node.PMIx, Args: []string{wire.PMIxServer}, Env: pmixEnv(t.launch.Command.Env), Dir: "/",
		Files: []*os.File{null, null, w, theirs}, Umask: -1,
	})
	if err != nil {
		return fmt.Errorf("%s: %s", t.node.PMIx, strerror.Text(err))
	}
	go func() {
		<-s.proc.Done()
		close(s.ended)
	}()
	return nil
}

// pmixEnv returns the environment of the step without the variables of a PMIx
// server by which srun itself was started.
func pmixEnv(environ []string) []string {
	return env.Without(environ, func(name string) bool {
		return strings.HasPrefix(name, "PMIX_") && !strings.HasPrefix(name, "PMIX_MCA_")
	})
}

// exchangeJob sends the server the step and receives the tasks' environment.
func (s *pmixServer) exchangeJob(t *tasks) error {
	job := step.PMIxJob{
		Name:  fmt.Sprintf("slurm.pmix.%d.%d", jobID(t.launch), t.launch.Step.ID),
		Nodes: t.launch.Step.Nodes, Node: t.part.Step, Dir: s.dir,
	}
	if err := s.conn.SendJSON(step.FramePMIx, &job); err != nil {
		return err
	}
	f, err := s.conn.Receive()
	if err != nil {
		return s.exitError(err)
	}
	if f.Type == step.FrameRefused {
		return errors.New(string(f.Data))
	}
	var ready step.PMIxReady
	if err := f.Decode(&ready); err != nil {
		return err
	}
	if f.Type != step.FramePMIxReady || len(ready.Env) != len(t.tasks) {
		return fmt.Errorf("%w: type %d for %d tasks", step.ErrFrame, f.Type, len(ready.Env))
	}
	for i, k := range t.tasks {
		s.env[k.id] = ready.Env[i]
	}
	return nil
}

// exitError returns the error of a server that hung up: the last line that it
// wrote, if any.
func (s *pmixServer) exitError(err error) error {
	select {
	case <-s.ended:
	case <-time.After(pmixStopTimeout):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		return errors.New(s.last)
	}
	return err
}

// forwardErrors forwards the server's standard error as notices.
func (s *pmixServer) forwardErrors(t *tasks, r *os.File) {
	defer r.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		s.mu.Lock()
		s.last = lines.Text()
		s.mu.Unlock()
		t.notice("slurmstepd: mpi/pmix: " + strings.ToValidUTF8(lines.Text(), "?") + "\n")
	}
	io.Copy(io.Discard, r) //nolint:errcheck // a line that is too long ends the scan, not the server
}

// read handles the server's exchanges with other nodes.
func (s *pmixServer) read(t *tasks, tree *Tree) {
	for {
		f, err := s.conn.Receive()
		if err != nil {
			select {
			case <-s.over:
			default:
				tree.pmixFences.fail("the server on " + t.node.Name + " has ended")
			}
			return
		}
		switch f.Type {
		case step.FrameCollect:
			tree.pmixFences.arrive(f)
		case step.FrameModex:
			tree.routeModex(f)
		case step.FrameAbort:
			t.abort("pmix", f.Task, string(f.Data))
		}
	}
}

// stop stops the server and removes its files. It may be called more than once.
func (s *pmixServer) stop() {
	s.once.Do(func() {
		close(s.over)
		if s.conn != nil {
			s.conn.Close()
		}
		if s.proc != nil {
			select {
			case <-s.ended:
			case <-time.After(pmixStopTimeout):
				s.proc.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
		}
		if s.dir != "" {
			os.RemoveAll(s.dir)
		}
	})
}

// CheckPMIx returns an error if PMIx does not work on this node.
func (n *Node) CheckPMIx() error {
	n.pmix.Lock()
	defer n.pmix.Unlock()
	if n.pmixWorks {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return err
	}
	defer null.Close()
	p, err := n.Spawn.Start(&spawn.Spec{
		Path: n.PMIx, Args: []string{wire.PMIxServer, "--version"}, Env: os.Environ(), Dir: "/",
		Files: []*os.File{null, null, w}, Umask: -1,
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("%s: %s", filepath.Base(n.PMIx), strerror.Text(err))
	}
	output, _ := io.ReadAll(io.LimitReader(r, 4096)) // the exit status decides
	if status := <-p.Done(); status != 0 {
		return errors.New(strings.TrimSpace(string(output)))
	}
	n.pmixWorks = true
	return nil
}
