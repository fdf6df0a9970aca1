// Package resume carries a stream of bytes over a sequence of connections. Bytes that were
// sent and not acknowledged when a connection broke are sent again on the next one, so
// nothing is lost or duplicated. Both ends have a Stream. The caller makes the connections
// and decides who may resume which stream.
//
// A connection carries records. A record begins with a byte for its kind and
// eight bytes with a length or an offset (big endian).
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

// Window is the maximum number of unacknowledged bytes that one end buffers.
// Write blocks when it is reached.
const Window = 1 << 20

// An end sends a record at least once every keepAlive. After DetectSilence, it
// considers a connection lost on which none has arrived for maxSilence.
const (
	keepAlive  = 5 * time.Second
	maxSilence = 20 * time.Second
)

const (
	recordData  = 'D' // a length, then that number of bytes
	recordAck   = 'A' // the number of bytes received so far
	headerSize  = 9
	maxRecord   = 64 << 10
	ackEvery    = 64 << 10
	bufferBytes = 80 << 10
)

// ErrGone means that the stream was not resumed in time.
var ErrGone = errors.New("the connection was not resumed")

// errRecord means that the other end is not a Stream.
var errRecord = errors.New("malformed record")

// errSilent means that nothing arrived for maxSilence.
var errSilent = fmt.Errorf("nothing was received for %s", maxSilence)

// Stream is one end of a stream. Its methods are safe for concurrent use, except
// Read, which may be called by one goroutine at a time. The caller must read
// until the stream ends, because acknowledgements arrive with the data.
type Stream struct {
	grace         time.Duration // the stream fails after this time without a connection
	onLoss        func(error)   // called when a connection breaks; may be nil
	detectSilence bool

	mu           sync.Mutex
	changed      *sync.Cond
	link         *link  // nil: there is no connection
	out          []byte // unacknowledged bytes, from offset outStart
	outStart     uint64
	received     uint64 // bytes read so far
	acknowledged uint64 // of these
	ackNow       bool   // send an acknowledgement
	closing      bool
	err          error // final
	timer        *time.Timer
}

// link is one connection.
type link struct {
	conn io.ReadWriteCloser
	r    *bufio.Reader
	left uint64 // unread bytes of the current record
	next uint64 // offset of the next byte to send
	idle bool   // everything has been sent
}

// New returns an end without a connection; Attach attaches one. The stream fails
// when it has been without a connection for the time grace.
func New(grace time.Duration) *Stream {
	s := &Stream{grace: grace}
	s.changed = sync.NewCond(&s.mu)
	s.timer = time.AfterFunc(grace, func() { s.Fail(ErrGone) })
	return s
}

// OnLoss registers a function that is called, in its own goroutine, whenever a
// connection breaks. It must be called before Attach.
func (s *Stream) OnLoss(fn func(cause error)) { s.onLoss = fn }

// DetectSilence makes the stream drop a connection on which nothing arrives. It
// must be called before Attach.
func (s *Stream) DetectSilence() { s.detectSilence = true }

// Detach drops the present connection, if any, and returns the number of bytes
// received: the offset from which the other end must continue.
func (s *Stream) Detach() (received uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(nil)
	return s.received
}

// Attach continues the stream over conn, which it owns. received is the number of
// bytes that the other end has received. The bytes of conn are read from r, which
// may have buffered some.
func (s *Stream) Attach(conn io.ReadWriteCloser, r io.Reader, received uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		conn.Close()
		return s.err
	}
	if end := s.outStart + uint64(len(s.out)); received < s.outStart || received > end {
		conn.Close()
		return fmt.Errorf("%w: the other end received %d bytes, not %d to %d", errRecord, received, s.outStart, end)
	}
	s.drop(nil)
	s.discard(received)
	l := &link{conn: conn, r: bufio.NewReaderSize(r, bufferBytes), next: received}
	s.link = l
	s.acknowledged = s.received
	s.timer.Stop()
	s.changed.Broadcast()
	go s.send(l)
	return nil
}

// drop closes the connection. cause is nil if it did not break. The caller holds
// s.mu.
func (s *Stream) drop(cause error) {
	if s.link == nil {
		return
	}
	go s.link.conn.Close() // Close of a TLS connection may block
	s.link = nil
	s.changed.Broadcast()
	if s.err != nil {
		return
	}
	s.timer.Reset(s.grace)
	if cause != nil && s.onLoss != nil {
		go s.onLoss(cause)
	}
}

// dropBroken drops l, if it is still the connection.
func (s *Stream) dropBroken(l *link, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.drop(cause)
	}
}

// Fail ends the stream; blocked and later calls return err.
func (s *Stream) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
}

// fail is Fail for callers that hold s.mu.
func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
		s.timer.Stop()
		s.drop(nil)
		s.changed.Broadcast()
	}
}

// Write buffers b for the other end. It blocks while the window is full. The error is
// io.ErrClosedPipe after Drain or Flush began.
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

// discard discards the buffered bytes up to an offset that the other end has
// received. The caller holds s.mu.
func (s *Stream) discard(received uint64) {
	s.out = s.out[received-s.outStart:]
	s.outStart = received
	if len(s.out) == 0 {
		s.out = nil
	}
	s.changed.Broadcast()
}

// Read reads what the other end wrote, and waits while there is no connection. The error
// is io.EOF after Close.
func (s *Stream) Read(b []byte) (int, error) {
	for {
		l, err := s.waitForLink()
		if err != nil {
			return 0, err
		}
		n, err := s.readFrom(l, b)
		if err != nil {
			s.dropBroken(l, err)
		}
		if n = s.accept(l, n); n > 0 {
			return n, nil
		}
	}
}

// waitForLink returns the connection and waits until there is one.
func (s *Stream) waitForLink() (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.link == nil && s.err == nil {
		s.changed.Wait()
	}
	return s.link, s.err
}

// accept counts n bytes as received and returns n, if l is still the connection.
// Otherwise it returns 0, because the other end sends these bytes again.
func (s *Stream) accept(l *link, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || s.link != l {
		return 0
	}
	s.received += uint64(n)
	if s.received-s.acknowledged >= ackEvery {
		s.ackNow = true
		s.changed.Broadcast()
	}
	return n
}

// readFrom reads from one connection, at most up to the end of a record.
func (s *Stream) readFrom(l *link, b []byte) (int, error) {
	for l.left == 0 {
		if l.r.Buffered() == 0 {
			s.acknowledgeNow()
		}
		if err := s.readHeader(l); err != nil {
			return 0, err
		}
	}
	defer s.watchForSilence(l)()
	n, err := l.r.Read(b[:min(uint64(len(b)), l.left)])
	l.left -= uint64(n)
	return n, err
}

// acknowledgeNow sends an acknowledgement of everything received, before the
// caller waits for more.
func (s *Stream) acknowledgeNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received != s.acknowledged {
		s.ackNow = true
		s.changed.Broadcast()
	}
}

// watchForSilence drops l after maxSilence, if the stream detects silence. The caller
// calls stop when its read returns.
func (s *Stream) watchForSilence(l *link) (stop func()) {
	if !s.detectSilence {
		return func() {}
	}
	t := time.AfterFunc(maxSilence, func() { s.dropBroken(l, errSilent) })
	return func() { t.Stop() }
}

// readHeader reads the header of the next record, and handles acknowledgements.
func (s *Stream) readHeader(l *link) error {
	defer s.watchForSilence(l)()
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
		if s.link == l && n >= s.outStart && n <= l.next {
			s.discard(n)
			return nil
		}
	}
	return errRecord
}

// send writes to one connection until it breaks.
func (s *Stream) send(l *link) {
	w := bufio.NewWriterSize(l.conn, bufferBytes)
	done := make(chan struct{})
	defer close(done)
	go s.sendKeepAlives(done)
	for {
		data, ack, more := s.pending(l)
		if !more {
			return
		}
		if err := write(w, data, ack); err != nil {
			s.dropBroken(l, err)
			return
		}
	}
}

// sendKeepAlives sends an acknowledgement every keepAlive.
func (s *Stream) sendKeepAlives(done <-chan struct{}) {
	t := time.NewTicker(keepAlive)
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

// pending waits for something to send over l. ack is nil if nothing is to be
// acknowledged. more is false when l is no longer the connection.
func (s *Stream) pending(l *link) (data []byte, ack *uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.link != l {
			return nil, nil, false
		}
		if from := l.next - s.outStart; from < uint64(len(s.out)) {
			data = s.out[from:]
			data = data[:min(len(data), maxRecord)]
			l.next += uint64(len(data))
		}
		if s.ackNow {
			n := s.received
			s.acknowledged = n
			s.ackNow = false
			ack = &n
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
