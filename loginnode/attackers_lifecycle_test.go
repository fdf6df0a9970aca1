package loginnode_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

func TestS15ProcessesEndWithTheirClient(t *testing.T) {
	n := start(t)
	for _, tty := range []bool{true, false} {
		c := n.login(n.ann())
		s, err := c.NewSession()
		n.must(err)
		if tty {
			n.must(s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.OPOST: 0}))
		}
		out, err := s.StdoutPipe()
		n.must(err)
		n.must(s.Start("echo $$; sleep 1000; sleep 1001"))
		var pid int
		_, err = fmt.Fscan(out, &pid)
		n.must(err)
		c.Close() // without a disconnect message
		eventually.Holds(t, fmt.Sprintf("the end of the process (terminal: %v)", tty), func() bool {
			return syscall.Kill(pid, 0) == syscall.ESRCH
		})
	}
	// One session of several on a connection.
	c := n.login(n.ann())
	var pids [2]int
	var both [2]*ssh.Session
	for i := range both {
		s, err := c.NewSession()
		n.must(err)
		n.must(s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.OPOST: 0}))
		out, err := s.StdoutPipe()
		n.must(err)
		n.must(s.Start("echo $$; exec sleep 1000"))
		_, err = fmt.Fscan(out, &pids[i])
		n.must(err)
		both[i] = s
	}
	both[0].Close()
	eventually.Holds(t, "the end of the closed session", func() bool { return syscall.Kill(pids[0], 0) == syscall.ESRCH })
	if syscall.Kill(pids[1], 0) != nil {
		t.Error("the other session ended too")
	}
}

func TestS15NothingIsLeft(t *testing.T) {
	sessions := 100
	if os.Getenv("BERTH_TEST_FULL") != "" {
		sessions = 2000
	}
	n := start(t)
	work := func(count int) {
		for i := range count {
			c, err := n.dial("ann", n.ann().key) // not n.login, which keeps it
			n.must(err)
			s, err := c.NewSession()
			n.must(err)
			if i%3 == 0 {
				n.must(s.RequestPty("xterm", 24, 80, nil))
			}
			if i%4 == 3 { // that disconnects without a message
				n.must(s.Start("sleep 1000"))
				c.Close()
				continue
			}
			n.must(s.Run("true"))
			c.Close()
		}
	}
	work(10)
	settled := func(goroutines, files int) bool {
		return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files
	}
	eventually.Holds(t, "the first sessions to be over", func() bool {
		return n.metric("berth_login_sessions") == "0" && n.metric("berth_login_connections") == "0"
	})
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	took := figures(t, itoa(sessions)+" sessions, every fourth client that disconnects without a message")
	work(sessions)
	eventually.Holds(t, fmt.Sprintf("goroutines and descriptors to be %d and %d again", goroutines, files), func() bool { return settled(goroutines+2, files+2) })
	if left, err := os.ReadDir(filepath.Join(n.dir, "run")); err != nil || len(left) > 0 {
		t.Errorf("left in the run directory: %v, %v", left, err)
	}
	t.Cleanup(func() {
		for _, c := range childrenOf(os.Getpid()) {
			t.Error("left: " + c)
		}
	})
	eventually.Holds(t, "no child to be left", func() bool { return len(childrenOf(os.Getpid())) == 0 })
	took()
}

// A client may disconnect while its session starts, when the process of the user's shell still
// executes this program: the shell is killed in this case, too.
func TestS15ClientsThatVanishAtTheStart(t *testing.T) {
	n := start(t)
	clients := 100
	if os.Getenv("BERTH_TEST_FULL") != "" {
		clients = 2000
	}
	var all sync.WaitGroup
	room := make(chan bool, 8)
	for i := range clients {
		room <- true
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { <-room }()
			c, err := n.dial("ann", n.ann().key)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			s, err := c.NewSession()
			if err == nil && i%2 == 0 {
				err = s.RequestPty("xterm", 24, 80, nil)
			}
			if err = errors.Join(err, s.Start("sleep 1000 & sleep 1000")); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		}()
	}
	all.Wait()
	eventually.Holds(t, "no process to be left", func() bool { return len(childrenOf(os.Getpid())) == 0 })
}

// figures returns a function that logs the resources that something has used in this process,
// which contains clients and server.
func figures(t testing.TB, what string) func() {
	t.Helper()
	resident := func() int {
		runtime.GC()
		debug.FreeOSMemory()
		data, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		pages, _ := strconv.Atoi(strings.Fields(string(data))[1])
		return pages * os.Getpagesize() >> 10
	}
	began, memory, files, goroutines, tasks := time.Now(), resident(), descriptors(t), runtime.NumGoroutine(), threads(t)
	return func() {
		t.Helper()
		t.Logf("%s: %.1f s; memory %d kB before and %d after, descriptors %d and %d, goroutines %d and %d, threads %d and %d", what,
			time.Since(began).Seconds(), memory, resident(), files, descriptors(t), goroutines, runtime.NumGoroutine(), tasks, threads(t))
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func childrenOf(pid int) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range all {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == itoa(pid) {
			out = append(out, string(data))
		}
	}
	return out
}

// Idle terminals do not use a thread each.
func TestIdleTerminalsShareThreads(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.MaxSessions, c.MaxUserChannels = 1000, 1000 })
	count := 100
	if os.Getenv("BERTH_TEST_FULL") != "" {
		count = 1000
	}
	c := n.login(n.ann())
	before := threads(t)
	defer figures(t, itoa(count)+" idle terminals")()
	for range count {
		s, err := c.NewSession()
		n.must(err)
		n.must(s.RequestPty("xterm", 24, 80, nil))
		_, err = s.StdinPipe()
		n.must(err)
		n.must(s.Start("exec cat"))
	}
	if now := threads(t); now-before > count/2 {
		t.Errorf("%d threads more for %d idle terminals", now-before, count)
	}
}

func threads(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestDrainWarnsWaitsAndEnds(t *testing.T) {
	n := start(t)
	s, err := n.login(n.ann()).NewSession()
	n.must(err)
	var errs lockedBuffer
	s.Stderr = &errs
	n.must(s.RequestPty("xterm", 24, 80, nil))
	in, err := s.StdinPipe()
	n.must(err)
	n.must(s.Start("read x; exit 5"))
	eventually.Holds(t, "the session", func() bool { return n.metric("berth_login_sessions") == "1" })
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	drained := make(chan struct{})
	go func() { defer close(drained); n.server.Drain(ctx, "the node ends") }()
	eventually.Holds(t, "the message", func() bool { return strings.Contains(errs.String(), "the node ends") })
	if n.server.Ready() {
		t.Error("ready while draining")
	}
	if _, err := n.dial("ann", n.ann().key); err == nil {
		t.Error("a login succeeded while draining")
	}
	_, err = io.WriteString(in, "done\n")
	n.must(err)
	var exit *ssh.ExitError
	if err := s.Wait(); !asError(err, &exit) || exit.ExitStatus() != 5 {
		t.Errorf("the session was ended before its command: %v", err)
	}
	select {
	case <-drained:
	case <-time.After(deadline):
		t.Error("drain does not end")
	}
}

func TestDeadClientIsNoticed(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.KeepAlive, c.KeepAliveMax = 100*time.Millisecond, 10 })
	// A relay that stops forwarding, as a network does that has failed.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	defer l.Close()
	var dead atomic.Bool
	var answers atomic.Int32 // of the client
	go func() {
		a, err := l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", n.addr)
		if err != nil {
			return
		}
		pipe := func(to, from net.Conn) {
			buf := make([]byte, 4096)
			for {
				k, err := from.Read(buf)
				if err != nil {
					return
				}
				if from == a {
					answers.Add(1)
				}
				if !dead.Load() {
					_, _ = to.Write(buf[:k])
				}
			}
		}
		go pipe(a, b)
		pipe(b, a)
	}()
	c, err := ssh.Dial("tcp", l.Addr().String(), &ssh.ClientConfig{User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	n.must(err)
	defer c.Close()
	s, err := c.NewSession()
	n.must(err)
	n.must(s.Start("sleep 1000"))
	eventually.Holds(t, "the session", func() bool { return n.metric("berth_login_sessions") == "1" })
	before := answers.Load()
	eventually.Holds(t, "the client has answered several keepalives", func() bool { return answers.Load() >= before+5 })
	if n.metric("berth_login_sessions") != "1" {
		t.Fatal("a client that answers was disconnected")
	}
	dead.Store(true)
	eventually.Holds(t, "the session of a dead client ends", func() bool { return n.metric("berth_login_sessions") == "0" })
}

// A client's own keepalives are answered, before it has opened anything too.
func TestClientsKeepalivesAreAnswered(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	for range 3 {
		if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); err != nil || !ok {
			t.Errorf("%v, %v", ok, err)
		}
	}
	if got := run(t, c, "echo alive"); got != "alive" {
		t.Error(got)
	}
}

// A client that sends no-more-sessions keeps the session that it has just opened.
func TestNoMoreSessions(t *testing.T) {
	n := start(t)
	for range 20 {
		c := n.login(n.ann())
		if ok, _, err := c.SendRequest("no-more-sessions@openssh.com", true, nil); err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		if got := run(t, c, "echo the first"); got != "the first" {
			t.Errorf("%q", got)
		}
		var open *ssh.OpenChannelError
		if _, err := c.NewSession(); !asError(err, &open) || open.Reason != ssh.Prohibited {
			t.Errorf("one more: %v", err)
		}
		c.Close()
	}
}

func TestHomeIsMadeOnFirstLogin(t *testing.T) {
	needRoot(t)
	var n *node
	n = start(t, func(c *loginnode.Config) {
		c.Session.MakeHome = true
		inner := c.Auth.Users
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			u, err := inner.Lookup(ctx, name)
			if err == nil {
				u.Keys = []string{string(ssh.MarshalAuthorizedKey(n.users[0].key.PublicKey()))}
				u.Home = filepath.Join(n.dir, "new", name)
				if name == "eve" {
					u.Home = "/proc/no/such"
				}
			}
			return u, err
		})
	})
	if got := n.output(n.ann(), "pwd; stat -c '%u %g %a' ."); got != fmt.Sprintf("%s/new/ann\n%d %d 700", n.dir, n.ann().UID, n.ann().GID) {
		t.Errorf("got %s", got)
	}
	c, err := n.dial("eve", n.ann().key)
	n.must(err)
	defer c.Close()
	s, err := c.NewSession()
	n.must(err)
	out, err := s.CombinedOutput("id")
	if err == nil || !strings.Contains(string(out), "cannot be started") {
		t.Errorf("%q, %v", out, err)
	}
	if strings.Contains(string(out), "/proc") {
		t.Errorf("the client gets details of the failure: %q", out)
	}
	if f := n.audit.find(t, "session-failed"); len(f) != 1 || !strings.Contains(f[0].Reason, "/proc/no") {
		t.Errorf("the log: %+v", f)
	}
	if got := n.output(n.ann(), "echo others go on"); got != "others go on" {
		t.Error(got)
	}
}
