package resume

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// deadline bounds every wait of these tests.
const deadline = 60 * time.Second

// pair is two ends, connected by what a test cuts.
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

// connect gives both ends a new connection, as client and agent do.
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
	has := p.a.Leave()
	hasB := p.b.Leave()
	if err := p.a.Use(x, x, hasB); err != nil {
		p.t.Error(err)
	}
	if err := p.b.Use(y, y, has); err != nil {
		p.t.Error(err)
	}
}

// sever cuts the connection, from one side or the other.
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
				t.Error("other bytes came than were sent")
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
				t.Error("it was over before a connection was cut")
			}
			t.Logf("%d cuts", cuts)
			return
		case <-end:
			t.Fatal("it takes too long")
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		}
		p.sever()
		if rand.IntN(2) == 0 {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond) // one end may not have seen it
		}
		p.connect()
	}
}

func TestWindow(t *testing.T) {
	p := newPair(t)
	go io.Copy(io.Discard, p.a) //nolint:errcheck // acknowledgements come with what is read
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
	kept := len(p.a.out)
	p.a.mu.Unlock()
	if kept > Window {
		t.Errorf("%d bytes are kept, more than %d", kept, Window)
	}
	select {
	case <-wrote:
		t.Error("more was taken over than one window")
	default:
	}
	if _, err := io.ReadFull(p.b, make([]byte, 2*Window)); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestEnds(t *testing.T) {
	p := newPair(t)
	if _, err := p.a.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 10)
		io.ReadFull(p.b, b) //nolint:errcheck // what came is compared
		got <- string(b)
		p.b.Flush(deadline) // the client is content and goes
	}()
	go io.Copy(io.Discard, p.a) //nolint:errcheck // as above
	p.a.Drain(deadline)
	if s := <-got; s != "last words" {
		t.Errorf("%q", s)
	}
	if _, err := p.a.Write([]byte("x")); err == nil {
		t.Error("a stream that has ended takes bytes")
	}
}

func TestGrace(t *testing.T) {
	s := New(10 * time.Millisecond)
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	x, _ := net.Pipe()
	if err := s.Use(x, x, 0); !errors.Is(err, ErrGone) {
		t.Error("a stream that is gone was taken up:", err)
	}
}

// TestBadRecords sends what no Stream sends: it must not be taken for data, nor
// make this end allocate or forget anything.
func TestBadRecords(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown":        {'X', 0, 0, 0, 0, 0, 0, 0, 0},
		"empty data":     {'D', 0, 0, 0, 0, 0, 0, 0, 0},
		"long data":      {'D', 0, 0, 0, 1, 0, 0, 0, 0},
		"unsent is here": {'A', 0, 0, 0, 0, 0, 0, 0, 9},
	} {
		s := New(deadline)
		lost := make(chan error, 1)
		s.OnLoss(func(err error) { lost <- err })
		x, y := net.Pipe()
		if err := s.Use(x, x, 0); err != nil {
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
			t.Errorf("%s: nothing happened", name)
		}
		s.Close()
	}
	s := New(deadline)
	defer s.Close()
	x, _ := net.Pipe()
	if err := s.Use(x, x, 5); !errors.Is(err, errRecord) {
		t.Error("bytes were taken for received that were never sent:", err)
	}
}
