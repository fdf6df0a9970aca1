package resume

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// deadline is the limit of every wait in these tests.
const deadline = eventually.Timeout

// pair is two ends whose connection a test can cut.
type pair struct {
	t    *testing.T
	a, b *Stream
	mu   sync.Mutex
	cut  []io.Closer
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, a: New(deadline), b: New(deadline)}
	p.connect()
	t.Cleanup(func() { p.a.Close(); p.b.Close() })
	return p
}

// connect reconnects both ends, like client and agent.
func (p *pair) connect() {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.cut = []io.Closer{x, y}
	p.mu.Unlock()
	receivedA := p.a.Detach()
	receivedB := p.b.Detach()
	if err := p.a.Attach(x, x, receivedB); err != nil {
		p.t.Error(err)
	}
	if err := p.b.Attach(y, y, receivedA); err != nil {
		p.t.Error(err)
	}
}

// sever cuts the connection from a random side.
func (p *pair) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[rand.IntN(2)].Close()
}

func TestNothingLostOverCuts(t *testing.T) {
	p := newPair(t)
	const size = 12 << 20
	var wg sync.WaitGroup
	for _, dir := range []struct{ from, to *Stream }{{p.a, p.b}, {p.b, p.a}} {
		sent := make([]byte, size)
		r := rand.NewChaCha8([32]byte{byte(len(sent))})
		r.Read(sent) //nolint:errcheck // it never fails
		wg.Go(func() {
			for rest := sent; len(rest) > 0; {
				n := min(1+rand.IntN(200_000), len(rest))
				if _, err := dir.from.Write(rest[:n]); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		})
		wg.Go(func() {
			got := make([]byte, size)
			if _, err := io.ReadFull(dir.to, got); err != nil {
				t.Error(err)
				return
			}
			if !bytes.Equal(got, sent) {
				t.Error("the received bytes differ from those sent")
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	cuts := 0
	for end := time.After(deadline); ; cuts++ {
		select {
		case <-done:
			if cuts == 0 {
				t.Error("all bytes were sent before a connection was cut")
			}
			t.Logf("%d cuts", cuts)
			return
		case <-end:
			t.Fatal("the transfer did not finish in time")
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		}
		p.sever()
		if rand.IntN(2) == 0 {
			runtime.Gosched() // one end may not have noticed yet
		}
		p.connect()
	}
}

func TestWindow(t *testing.T) {
	p := newPair(t)
	go io.Copy(io.Discard, p.a) //nolint:errcheck // acknowledgements arrive with the data
	wrote := make(chan error, 1)
	go func() {
		_, err := p.a.Write(make([]byte, 3*Window))
		wrote <- err
	}()
	buf := make([]byte, Window)
	if _, err := io.ReadFull(p.b, buf); err != nil {
		t.Fatal(err)
	}
	p.a.mu.Lock()
	buffered := len(p.a.out)
	p.a.mu.Unlock()
	if buffered > Window {
		t.Errorf("%d bytes are buffered, more than %d", buffered, Window)
	}
	select {
	case <-wrote:
		t.Error("Write accepted more than one window")
	default:
	}
	if _, err := io.ReadFull(p.b, make([]byte, 2*Window)); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestDrainAndFlush(t *testing.T) {
	p := newPair(t)
	if _, err := p.a.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 10)
		io.ReadFull(p.b, b) //nolint:errcheck // what came is compared
		got <- string(b)
		p.b.Flush(deadline) // as a client that has everything
	}()
	go io.Copy(io.Discard, p.a) //nolint:errcheck // as above
	p.a.Drain(deadline)
	if s := <-got; s != "last words" {
		t.Errorf("%q", s)
	}
	if _, err := p.a.Write([]byte("x")); err == nil {
		t.Error("a closed stream accepts bytes")
	}
}

func TestGrace(t *testing.T) {
	s := New(10 * time.Millisecond)
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	x, _ := net.Pipe()
	if err := s.Attach(x, x, 0); !errors.Is(err, ErrGone) {
		t.Error("a failed stream was resumed:", err)
	}
}

// TestBadRecords sends malformed records. They must not be read as data, and must
// not make this end allocate memory or discard unacknowledged bytes.
func TestBadRecords(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown":    {'X', 0, 0, 0, 0, 0, 0, 0, 0},
		"empty data": {'D', 0, 0, 0, 0, 0, 0, 0, 0},
		"long data":  {'D', 0, 0, 0, 1, 0, 0, 0, 0},
		"unsent":     {'A', 0, 0, 0, 0, 0, 0, 0, 9},
	} {
		s := New(deadline)
		lost := make(chan error, 1)
		s.OnLoss(func(err error) { lost <- err })
		x, y := net.Pipe()
		if err := s.Attach(x, x, 0); err != nil {
			t.Fatal(err)
		}
		go s.Read(make([]byte, 10)) //nolint:errcheck // it ends with the stream
		go y.Write(b)               //nolint:errcheck // the other end may have gone
		select {
		case err := <-lost:
			if !errors.Is(err, errRecord) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(deadline):
			t.Errorf("%s: the connection was not dropped", name)
		}
		s.Close()
	}
	s := New(deadline)
	defer s.Close()
	x, _ := net.Pipe()
	if err := s.Attach(x, x, 5); !errors.Is(err, errRecord) {
		t.Error("the stream accepted an acknowledgement of bytes that were never sent:", err)
	}
}

// TestSilenceWithinARecord checks that a connection on which nothing arrives any more is
// dropped, also if it broke in the middle of a record.
func TestSilenceWithinARecord(t *testing.T) {
	for name, sent := range map[string][]byte{
		"before a record": nil,
		"in a header":     {'D', 0, 0},
		"in the data":     {'D', 0, 0, 0, 0, 0, 0, 0, 5, 'h', 'e'},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(time.Hour)
			defer s.Close()
			s.DetectSilence()
			lost := make(chan error, 1)
			s.OnLoss(func(err error) { lost <- err })
			x, y := net.Pipe()
			defer y.Close()
			if err := s.Attach(x, x, 0); err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, s) //nolint:errcheck // it ends with the stream
			go io.Copy(io.Discard, y) //nolint:errcheck // it ends with the connection
			if _, err := y.Write(sent); err != nil {
				t.Fatal(err)
			}
			select {
			case <-lost:
			case <-time.After(2 * maxSilence):
				t.Errorf("the connection is silent %s, and was not dropped", name)
			}
		})
	}
}
