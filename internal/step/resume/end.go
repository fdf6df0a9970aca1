package resume

import (
	"io"
	"time"
)

// Drain waits until the other end has everything that was written, or the
// stream fails, or limit is over; then it ends the stream.
func (s *Stream) Drain(limit time.Duration) {
	s.finish(limit, func() bool { return len(s.out) == 0 })
}

// Flush waits until everything is on its way, what was read acknowledged, or
// the stream fails, or limit is over; then it ends the stream.
func (s *Stream) Flush(limit time.Duration) {
	s.mu.Lock()
	s.ackNow = s.taken != s.told
	s.mu.Unlock()
	s.finish(limit, func() bool {
		return s.line != nil && s.line.idle && !s.ackNow && s.line.next == s.acked+uint64(len(s.out))
	})
}

func (s *Stream) finish(limit time.Duration, done func() bool) {
	over := time.AfterFunc(limit, func() { s.Fail(io.EOF) })
	defer over.Stop()
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	for s.err == nil && !done() {
		s.changed.Wait()
	}
	s.mu.Unlock()
	s.Fail(io.EOF)
}

// Abandon ends a stream that has no connection: nobody will take it up.
func (s *Stream) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == nil {
		s.fail(ErrGone)
	}
}

// Close ends the stream at once; what the other end has not got is lost.
func (s *Stream) Close() error {
	s.Fail(io.EOF)
	return nil
}
