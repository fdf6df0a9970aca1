package response

import (
	"errors"
	"net/http"
	"time"
)

// Stream is the body of a watch: JSON documents, one a line.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewStream sends the header of a watch's response.
func NewStream(w http.ResponseWriter) Stream {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return Stream{w, http.NewResponseController(w)}
}

// Write sends a part of an event; with flush set, everything written so far
// leaves this process. It returns false if the client is gone or does not read.
func (s *Stream) Write(part []byte, flush bool) bool {
	if !s.setDeadline(time.Now().Add(writeTimeout)) {
		return false
	}
	if _, err := s.w.Write(part); err != nil {
		return false
	}
	if !flush {
		return true
	}
	// HTTP/2 resets a stream whose deadline passes even if it has nothing to send,
	// so the deadline must end with the event.
	return s.control.Flush() == nil && s.setDeadline(time.Time{})
}

// setDeadline sets the time by which the client must have read what is written.
func (s *Stream) setDeadline(at time.Time) bool {
	err := s.control.SetWriteDeadline(at)
	return err == nil || errors.Is(err, http.ErrNotSupported)
}
