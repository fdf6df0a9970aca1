package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// cutter connects to the first agent of a gang, as the API role does. A test can cut its
// connections.
type cutter struct {
	g  *gang
	id *peer.Identity

	mu      sync.Mutex
	conn    net.Conn
	blocked atomic.Bool // new connections fail
	dials   atomic.Int32
}

func newCutter(g *gang) *cutter {
	id, err := peer.NewIdentity(g.cert, g.key, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	return &cutter{g: g, id: id}
}

func (c *cutter) dial(ctx context.Context) (io.ReadWriteCloser, bool, error) {
	c.dials.Add(1)
	if c.blocked.Load() {
		return nil, true, errors.New("unreachable")
	}
	c.g.mu.Lock()
	address := c.g.hello[0]
	c.g.mu.Unlock()
	conn, err := c.id.DialClient(ctx, address)
	if err != nil {
		return nil, true, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return conn, false, nil
}

// cut breaks the connection below TLS, as a network failure does.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.(interface{ NetConn() net.Conn }).NetConn().Close() //nolint:forcetypeassert,errcheck // it is a tls.Conn
}

// TestConnectionLost cuts the connection of a client repeatedly while its step writes,
// reads and ends.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	c := newCutter(g)
	var lost, back atomic.Int32
	conn, _, err := step.DialResumable(t.Context(), "me", c.dial, func(err error) {
		if err != nil {
			lost.Add(1)
		} else {
			back.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := &step.Request{JobID: g.id, Shape: step.Shape{Nodes: 1, Tasks: 1}, Command: step.Command{
		Args: []string{"/bin/sh", "-c", "seq 100000; read line; echo got $line; exit 7"},
		Env:  []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdin: step.StdinAll, Umask: -1,
	}}
	if err := conn.SendJSON(step.FrameRequest, req); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	status, frames := uint32(0), 0
	err = step.Follow(conn, nil, func(f *step.Frame) error {
		switch f.Type {
		case step.FrameStdout:
			if out.Write(f.Data); frames%3 == 0 {
				c.cut()
			}
			frames++
			if strings.HasSuffix(out.String(), "\n100000\n") {
				c.cut()
				return conn.Send(&step.Frame{Type: step.FrameStdin, Task: step.AllTasks, Data: []byte("this\n")})
			}
		case step.FrameExit:
			var e step.Exit
			if err := f.Decode(&e); err != nil {
				return err
			}
			status = e.Status
			c.cut()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 100000 {
		fmt.Fprintln(&want, i+1)
	}
	want.WriteString("got this\n")
	if out.String() != want.String() {
		t.Errorf(
			"%d bytes of output, want %d, ending in %q",
			out.Len(),
			want.Len(),
			out.String()[max(0, out.Len()-40):],
		)
	}
	if step.ExitCode(status) != 7 || lost.Load() < 3 || back.Load() < 3 {
		t.Errorf("status %d, lost %d times, back %d times", status, lost.Load(), back.Load())
	}
	alive(t, socket, g)
}

// TestClientGone checks that a step whose client does not reconnect can be observed, and
// ends after the grace period or when the client is known to have hung up.
func TestClientGone(t *testing.T) {
	t.Parallel()
	t.Run("too long", func(t *testing.T) { t.Parallel(); testClientGone(t, 2*time.Second, false) })
	t.Run("hung up", func(t *testing.T) { t.Parallel(); testClientGone(t, time.Hour, true) })
}

// testClientGone runs the test with the given grace period. With hungUp the agents are
// notified that the client has hung up.
func testClientGone(t *testing.T, grace time.Duration, hungUp bool) {
	g := start(t, shape{cpus: []int32{1, 1}, script: "#!/bin/sh\necho up\nsleep 600\n", with: func(g *gang) {
		g.image = []string{"BERTH_TEST_AWAY=" + grace.String()}
	}})
	g.await("up")
	c := newCutter(g)
	conn, _, err := step.DialResumable(t.Context(), "me", c.dial, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := &step.Request{JobID: g.id, Shape: step.Shape{Nodes: 1, Tasks: 1}, Command: step.Command{
		Args: []string{
			"/bin/sh",
			"-c",
			"echo $$ > pid.0; echo here; exec sleep 600",
		},
		Env:   []string{"PATH=/usr/bin:/bin"},
		Dir:   g.dir,
		Stdin: step.StdinNone,
		Umask: -1,
	}}
	if err := conn.SendJSON(step.FrameRequest, req); err != nil {
		t.Fatal(err)
	}
	begun := errors.New("it runs")
	if err := step.Follow(conn, nil, func(f *step.Frame) error {
		if f.Type == step.FrameStdout {
			return begun
		}
		return nil
	}); !errors.Is(err, begun) {
		t.Fatal(err)
	}
	c.blocked.Store(true)
	c.cut()

	raw, err := c.id.DialClient(t.Context(), g.hello[0])
	if err != nil {
		t.Fatal(err)
	}
	observer, err := step.NewClient(raw)
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	if err := observer.SendJSON(step.FrameAttach, step.Attach{StepID: 0}); err != nil {
		t.Fatal(err)
	}
	if hungUp {
		g.command(wire.Command{Kind: wire.CommandHungUp, Client: "another"})
		stop := repeat(func() { g.command(wire.Command{Kind: wire.CommandHungUp, Client: "me"}) })
		defer stop() // the first may precede the loss of the client
	}
	seen := ""
	if err := step.Follow(observer, nil, func(f *step.Frame) error {
		if f.Type == step.FrameStdout {
			seen += string(f.Data)
		}
		return nil
	}); err != nil {
		t.Error(err) // the process must end with the step
	}
	if seen != "here\n" {
		t.Errorf("the observer received %q", seen)
	}
	c.blocked.Store(!hungUp)     // should it reconnect nevertheless
	for err = nil; err == nil; { // the client gets an error after the received bytes
		_, err = conn.Receive()
	}
	g.command(wire.Command{Kind: wire.CommandTerminate})
	g.finish()
	if err := processIn(t, g, "pid.0"); err == nil {
		t.Error("the task was left running")
	}
}

// TestUnknownToken resumes streams that do not exist.
func TestUnknownToken(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	c := newCutter(g)
	for _, token := range []string{"x", strings.Repeat("A", 26)} {
		raw, _, err := c.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn := step.NewConn(raw)
		var answer step.Resumable
		if err := conn.SendJSON(
			step.FrameOpen,
			step.Open{Kind: step.KindResumable, Token: token, Received: 1 << 60},
		); err != nil {
			t.Fatal(err)
		}
		if err := conn.Expect(step.FrameResumable, &answer); err != nil || answer.Token != "" {
			t.Errorf("token %q: %+v, %v", token, answer, err)
		}
		conn.Close()
	}
	alive(t, socket, g)
}

// processIn returns an error unless the process whose pid is in a file of the work
// directory exists.
func processIn(t *testing.T, g *gang, name string) error {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(pid, 0)
}

// repeat calls fn repeatedly until stop is called.
func repeat(fn func()) (stop func()) {
	tick := time.NewTicker(100 * time.Millisecond)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				fn()
			case <-over:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(over) }
}
