package agent_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/step"
)

// victim starts a job that waits, and returns it with the socket of its first agent.
func victim(t *testing.T) (g *gang, socket string) {
	t.Helper()
	g = start(t, shape{cpus: []int32{1, 1}, script: "#!/bin/sh\necho up\nsleep 600\n"})
	g.await("up")
	return g, socketOf(t, g)
}

// closed fails the test unless the other side closes the connection without an answer.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(eventually.Timeout)) //nolint:errcheck // then the read fails
	b, err := io.ReadAll(c)
	var timeout net.Error
	if len(b) > 0 || (errors.As(err, &timeout) && timeout.Timeout()) {
		t.Errorf("answer %q, %v; want the end of the connection", b, err)
	}
}

// alive fails the test unless the agent still works.
func alive(t *testing.T, socket string, g *gang) {
	t.Helper()
	conn, err := step.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := &step.Request{JobID: g.id, Shape: step.Shape{Nodes: 1, Tasks: 1}, Command: step.Command{
		Args: []string{"/bin/echo", "well"}, Dir: "/", Stdin: step.StdinNone, Umask: -1}}
	if err := conn.SendJSON(step.FrameRequest, req); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = step.Follow(conn, nil, func(f *step.Frame) error {
		if f.Type == step.FrameStdout {
			out.Write(f.Data)
		}
		return nil
	})
	if err != nil || out.String() != "well\n" {
		t.Errorf("the agent does not work any more: %q, %v", out.String(), err)
	}
}

func frame(typ byte, task, length uint32, data string) []byte {
	b := []byte{typ, 0}
	b = binary.BigEndian.AppendUint32(b, task)
	b = binary.BigEndian.AppendUint32(b, length)
	return append(b, data...)
}

func TestAttackFrames(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	open := func(kind string) []byte {
		text := `{"kind":"` + kind + `"}`
		return frame(byte(step.FrameOpen), 0, uint32(len(text)), text)
	}
	for name, b := range map[string][]byte{
		"garbage":      []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"huge open":    frame(byte(step.FrameOpen), 0, 1<<31, "{"),
		"huge request": append(open(step.KindClient), frame(byte(step.FrameRequest), 0, step.MaxLaunch+1, "{")...),
		"no json":      append(open(step.KindClient), frame(byte(step.FrameRequest), 0, 1, "{")...),
		"launch here":  append(open(step.KindLaunch), frame(byte(step.FrameLaunch), 0, 2, "{}")...),
		"no kind":      open("root"),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.Write(b) //nolint:errcheck // the agent may have closed already
			closed(t, c)
		})
	}
	alive(t, socket, g)
}

func TestAttackInputBeyondCredit(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	conn, err := step.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := &step.Request{JobID: g.id, Shape: step.Shape{Nodes: 1, Tasks: 1}, Command: step.Command{
		Args: []string{"/bin/sleep", "600"}, Dir: "/", Stdin: step.StdinAll, Umask: -1}}
	if err := conn.SendJSON(step.FrameRequest, req); err != nil {
		t.Fatal(err)
	}
	for sent := 0; sent < 1<<30; sent += step.MaxData {
		if conn.Send(&step.Frame{Type: step.FrameStdin, Task: step.AllTasks, Data: make([]byte, step.MaxData)}) != nil {
			break
		}
	}
	for err == nil {
		_, err = conn.Receive()
	}
	alive(t, socket, g)
	if peak := peakMemory(g.nodes[0].Process.Pid); peak > 200<<10 {
		t.Errorf("the agent took %d KiB", peak)
	}
}

func TestAttackTLS(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	other := &gang{t: t, id: 1}
	other.certificate()
	stranger, err := tls.X509KeyPair([]byte(other.cert), []byte(other.key))
	if err != nil {
		t.Fatal(err)
	}
	text := `{"kind":"launch"}`
	for name, config := range map[string]*tls.Config{
		"no certificate":    {InsecureSkipVerify: true},
		"another job's":     {InsecureSkipVerify: true, Certificates: []tls.Certificate{stranger}},
		"old version":       {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{stranger}},
		"the right one off": {InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: ownCert(t, g).Certificate, PrivateKey: stranger.PrivateKey}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := tls.Dial("tcp", g.hello[1], config)
			if err != nil {
				return // refused in the handshake
			}
			defer c.Close()
			c.Write(frame(byte(step.FrameOpen), 0, uint32(len(text)), text)) //nolint:errcheck // may be closed already
			closed(t, c)
		})
	}
	alive(t, socket, g)
}

func ownCert(t *testing.T, g *gang) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(g.cert), []byte(g.key))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestAttackOtherUser makes the socket accessible to other users, so that only the
// agent's own check of the peer's uid protects it.
func TestAttackOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("another user needs root: CI runs this test as root")
	}
	g, socket := victim(t)
	for dir := socket; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode()&0o001 == 0 {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	// The agent runs as root here, so every other uid must be refused.
	done := make(chan struct{})
	go func() {
		// The thread is never unlocked, so that no other goroutine gets its uid. It
		// must not end, because the agents that it started would be killed (Pdeathsig).
		defer func() { close(done); select {} }()
		runtime.LockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			t.Error(e)
			return
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer syscall.Close(fd)
		if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		text := `{"kind":"client"}`
		syscall.Write(
			fd,
			frame(byte(step.FrameOpen), 0, uint32(len(text)), text),
		) //nolint:errcheck // may be closed already
		b := make([]byte, 1)
		if n, err := syscall.Read(fd, b); n != 0 && err == nil {
			t.Errorf("answer of %d bytes", n)
		}
	}()
	<-done
	alive(t, socket, g)
}

// TestAgentHidden checks that another process of the same uid cannot read the job's key
// from the agent's memory.
func TestAgentHidden(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root owns the files of every hidden process")
	}
	g, _ := victim(t)
	st, err := os.Stat("/proc/" + itoa(int64(g.nodes[0].Process.Pid)) + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) == os.Getuid() {
		t.Error("the agent's memory belongs to the job's user")
	}
}

// TestAttackReplay replays to an agent, byte for byte, what a real client and a real agent
// have sent it.
func TestAttackReplay(t *testing.T) {
	t.Parallel()
	g, socket := victim(t)
	g.mu.Lock()
	address := g.hello[0]
	g.mu.Unlock()
	id, err := peer.NewIdentity(g.cert, g.key, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, dial := range map[string]func(context.Context, string) (net.Conn, error){"client": id.DialClient, "agent": id.Dial} {
		tap := newTap(t, address)
		conn, err := dial(t.Context(), tap.address)
		if err != nil {
			t.Fatal(name, err)
		}
		c := step.NewConn(conn)
		req := &step.Request{JobID: g.id, Shape: step.Shape{Nodes: 1, Tasks: 1}, Command: step.Command{
			Args: []string{
				"/bin/sh",
				"-c",
				"echo ran >> runs." + name,
			},
			Dir:   g.dir,
			Env:   []string{"PATH=/bin:/usr/bin"},
			Stdin: step.StdinNone,
			Umask: -1,
		}}
		if err := errors.Join(
			c.SendJSON(step.FrameOpen, step.Open{Kind: step.KindClient}),
			c.SendJSON(step.FrameRequest, req),
		); err != nil {
			t.Fatal(name, err)
		}
		if err := step.Follow(c, nil, func(*step.Frame) error { return nil }); err != nil {
			t.Fatal(name, err)
		}
		c.Close()
		again, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		again.Write(tap.recorded())                               //nolint:errcheck // the agent may have closed already
		again.SetReadDeadline(time.Now().Add(eventually.Timeout)) //nolint:errcheck // then the read fails
		if _, err := io.Copy(io.Discard, again); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a replayed handshake is kept waiting", name)
		}
		again.Close()
		if runs := fileText(t, filepath.Join(g.dir, "runs."+name)); runs != "ran\n" {
			t.Errorf("%s: a replayed step ran: %q", name, runs)
		}
	}
	alive(t, socket, g)
}

// tap forwards one connection and records what its client sends.
type tap struct {
	address string
	mu      sync.Mutex
	sent    bytes.Buffer
}

func (x *tap) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent.Write(b)
}

func (x *tap) recorded() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return bytes.Clone(x.sent.Bytes())
}

func newTap(t *testing.T, to string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	x := &tap{address: l.Addr().String()}
	go func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go io.Copy(client, server)                 //nolint:errcheck // until either ends
		io.Copy(io.MultiWriter(server, x), client) //nolint:errcheck // until either ends
	}()
	return x
}
