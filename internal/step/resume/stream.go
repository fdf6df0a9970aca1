// Package resume carries a stream of bytes over one connection after the other:
// what was sent and not acknowledged when a connection broke is sent again on
// the next, so nothing is lost and nothing comes twice. Both ends have a Stream;
// who makes the connections, and who may take up which stream, is the caller's
// to say.
//
// On a connection there are records: a byte that says which kind, and eight
// that are a length or an offset (big endian).
package resume

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Window is how many bytes one end keeps that the other has not acknowledged;
// Write waits when there are as many.
const Window = 1 << 20

// Times of a connection: a sign of life is sent every beat; one end that has
// been told to Watch takes a connection for lost that shows none for silence.
const (
	beat    = 5 * time.Second
	silence = 20 * time.Second
)

const (
	recordData  = 'D' // length, then as many bytes
	recordAck   = 'A' // how many bytes have been taken in all
	headerSize  = 9
	maxRecord   = 64 << 10
	ackEvery    = 64 << 10
	bufferBytes = 80 << 10
)

// ErrGone means that the stream was not taken up again in time.
var ErrGone = errors.New("the connection was not taken up again")

// errRecord means bytes that no Stream sends.
var errRecord = errors.New("malformed record")

// Stream is one end. Its methods are safe for concurrent use, but for Read,
// which is for one goroutine, and which somebody has to call: acknowledgements
// come with what is read.
type Stream struct {
	grace time.Duration // a broken connection is waited for that long
	lost  func(error)   // a connection broke; nil: nobody asks
	watch bool

	mu      sync.Mutex
	changed *sync.Cond
	line    *line  // nil: there is none
	out     []byte // not acknowledged; begins at offset acked
	acked   uint64
	taken   uint64 // bytes read, in all
	told    uint64 // of these, acknowledged
	ackNow  bool
	closing bool  // by Close
	err     error // for good
	timer   *time.Timer
}

// line is one connection.
type line struct {
	conn io.ReadWriteCloser
	r    *bufio.Reader
	left uint64 // bytes of the record that is being read
	next uint64 // offset of the next byte to send
	idle bool   // everything has been sent
}

// New makes an end without a connection; Use gives it one. It fails for good
// when it has had none for as long as grace.
func New(grace time.Duration) *Stream {
	s := &Stream{grace: grace}
	s.changed = sync.NewCond(&s.mu)
	s.timer = time.AfterFunc(grace, func() { s.Fail(ErrGone) })
	return s
}

// OnLoss has fn called, in a goroutine of its own, with every connection that
// breaks. Call it before Use.
func (s *Stream) OnLoss(fn func(error)) { s.lost = fn }

// Watch has the stream give up connections that show no life. Call it before
// Use.
func (s *Stream) Watch() { s.watch = true }

// Leave gives up the connection there is, if any, and tells how many bytes have
// been read: what the other end has to go on from.
func (s *Stream) Leave() (taken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(nil)
	return s.taken
}

// Use goes on over conn, which the stream owns from then on. has is how many
// bytes the other end has read, and bytes read from conn before belong to r.
func (s *Stream) Use(conn io.ReadWriteCloser, r io.Reader, has uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		conn.Close()
		return s.err
	}
	if has < s.acked || has > s.acked+uint64(len(s.out)) {
		conn.Close()
		return fmt.Errorf("%w: the other end has %d bytes, not %d to %d", errRecord, has, s.acked, s.acked+uint64(len(s.out)))
	}
	s.drop(nil)
	s.acknowledge(has)
	l := &line{conn: conn, r: bufio.NewReaderSize(r, bufferBytes), next: has}
	s.line, s.told = l, s.taken
	s.timer.Stop()
	s.changed.Broadcast()
	go s.send(l)
	return nil
}

// drop ends the connection. s.mu is held.
func (s *Stream) drop(why error) {
	if s.line == nil {
		return
	}
	go s.line.conn.Close() // it may want to say goodbye to somebody who does not listen
	s.line = nil
	s.changed.Broadcast()
	if s.err != nil {
		return
	}
	s.timer.Reset(s.grace)
	if why != nil && s.lost != nil {
		go s.lost(why)
	}
}

// broke notes that l does not work any more.
func (s *Stream) broke(l *line, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == l {
		s.drop(why)
	}
}

// Fail ends the stream for good; blocked calls return err.
func (s *Stream) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
}

// fail is Fail. s.mu is held.
func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
		s.timer.Stop()
		s.drop(nil)
		s.changed.Broadcast()
	}
}

// Write takes b over, and waits while the other end is too far behind.
func (s *Stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(b) {
		for s.err == nil && !s.closing && len(s.out) >= Window {
			s.changed.Wait()
		}
		switch {
		case s.err != nil:
			return n, s.err
		case s.closing:
			return n, io.ErrClosedPipe
		}
		k := min(len(b)-n, Window-len(s.out))
		s.out = append(s.out, b[n:n+k]...)
		n += k
		s.changed.Broadcast()
	}
	return n, nil
}

// acknowledge forgets what the other end has. s.mu is held.
func (s *Stream) acknowledge(has uint64) {
	s.out = s.out[has-s.acked:]
	s.acked = has
	if len(s.out) == 0 {
		s.out = nil
	}
	s.changed.Broadcast()
}

// Read reads what the other end wrote. The error is io.EOF after Close.
func (s *Stream) Read(b []byte) (int, error) {
	for {
		l, err := s.current()
		if err != nil {
			return 0, err
		}
		n, err := s.readLine(l, b)
		if err != nil {
			s.broke(l, err)
		}
		if n = s.count(l, n); n > 0 {
			return n, nil
		}
	}
}

// current waits for a connection.
func (s *Stream) current() (*line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.line == nil && s.err == nil {
		s.changed.Wait()
	}
	return s.line, s.err
}

// count takes n bytes for read, if l was the connection until now: what came
// over another the other end sends again.
func (s *Stream) count(l *line, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || s.line != l {
		return 0
	}
	s.taken += uint64(n)
	if s.taken-s.told >= ackEvery {
		s.ackNow = true
		s.changed.Broadcast()
	}
	return n
}

// readLine reads from one connection up to the end of a record.
func (s *Stream) readLine(l *line, b []byte) (int, error) {
	for l.left == 0 {
		if l.r.Buffered() == 0 {
			s.ackSoon()
		}
		if err := s.record(l); err != nil {
			return 0, err
		}
	}
	n, err := l.r.Read(b[:min(uint64(len(b)), l.left)])
	l.left -= uint64(n)
	return n, err
}

// ackSoon has what was read acknowledged before more is waited for.
func (s *Stream) ackSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken != s.told {
		s.ackNow = true
		s.changed.Broadcast()
	}
}

// record reads the next header.
func (s *Stream) record(l *line) error {
	if s.watch {
		t := time.AfterFunc(silence, func() { s.broke(l, errors.New("no sign of life")) })
		defer t.Stop()
	}
	var h [headerSize]byte
	if _, err := io.ReadFull(l.r, h[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(h[1:])
	switch {
	case h[0] == recordData && n > 0 && n <= maxRecord:
		l.left = n
		return nil
	case h[0] == recordAck:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.line == l && n >= s.acked && n <= l.next {
			s.acknowledge(n)
			return nil
		}
	}
	return errRecord
}

// send writes to one connection until it breaks.
func (s *Stream) send(l *line) {
	w := bufio.NewWriterSize(l.conn, bufferBytes)
	done := make(chan struct{})
	defer close(done)
	go s.live(done)
	for {
		data, ack, more := s.pending(l)
		if !more {
			return
		}
		if err := write(w, data, ack); err != nil {
			s.broke(l, err)
			return
		}
	}
}

// live has something sent every beat.
func (s *Stream) live(done <-chan struct{}) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			s.ackNow = true
			s.changed.Broadcast()
			s.mu.Unlock()
		case <-done:
			return
		}
	}
}

// pending waits for something to send over l; ack is nil where there is nothing
// to acknowledge. more is false when l is not the connection any more.
func (s *Stream) pending(l *line) (data []byte, ack *uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.line != l {
			return nil, nil, false
		}
		if from := l.next - s.acked; from < uint64(len(s.out)) {
			data = s.out[from:]
			data = data[:min(len(data), maxRecord)]
			l.next += uint64(len(data))
		}
		if s.ackNow {
			n := s.taken
			s.told, s.ackNow, ack = n, false, &n
		}
		if data != nil || ack != nil {
			l.idle = false
			return data, ack, true
		}
		if !l.idle {
			l.idle = true
			s.changed.Broadcast()
		}
		s.changed.Wait()
	}
}

func write(w *bufio.Writer, data []byte, ack *uint64) error {
	header := func(kind byte, n uint64) error {
		var h [headerSize]byte
		h[0] = kind
		binary.BigEndian.PutUint64(h[1:], n)
		_, err := w.Write(h[:])
		return err
	}
	if ack != nil {
		if err := header(recordAck, *ack); err != nil {
			return err
		}
	}
	if len(data) > 0 {
		if err := header(recordData, uint64(len(data))); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return w.Flush()
}
