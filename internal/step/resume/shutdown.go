package resume

import (
	"io"
	"time"
)

// Drain waits until the other end has received everything that was written, the
// stream fails, or the timeout expires; then it closes the stream.
func (s *Stream) Drain(timeout time.Duration) {
	s.closeWhen(timeout, func() bool { return len(s.out) == 0 })
}

// Flush waits until everything that was written has been sent and everything
// that was read has been acknowledged, the stream fails, or the timeout expires;
// then it closes the stream.
func (s *Stream) Flush(timeout time.Duration) {
	s.mu.Lock()
	s.ackNow = s.received != s.acknowledged
	s.mu.Unlock()
	s.closeWhen(timeout, func() bool {
		return s.link != nil && s.link.idle && !s.ackNow && s.link.next == s.outStart+uint64(len(s.out))
	})
}

func (s *Stream) closeWhen(timeout time.Duration, done func() bool) {
	timer := time.AfterFunc(timeout, func() { s.Fail(io.EOF) })
	defer timer.Stop()
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	for s.err == nil && !done() {
		s.changed.Wait()
	}
	s.mu.Unlock()
	s.Fail(io.EOF)
}

// Abandon fails the stream if it has no connection, because no client will
// resume it.
func (s *Stream) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		s.fail(ErrGone)
	}
}

// Close closes the stream at once. What the other end has not received is lost.
func (s *Stream) Close() error {
	s.Fail(io.EOF)
	return nil
}
