package response

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlineRecorder records the write deadline at each write.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
	during   []time.Time
}

func (r *deadlineRecorder) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func (r *deadlineRecorder) Write(b []byte) (int, error) {
	r.during = append(r.during, r.deadline)
	return r.ResponseRecorder.Write(b)
}

// TestStreamDeadline: each write has a deadline, and there is none between two
// events: HTTP/2 would reset a stream that has nothing to send.
func TestStreamDeadline(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	s := NewStream(w)
	if !s.Write([]byte("part "), false) || !s.Write([]byte("end\n"), true) {
		t.Fatal("the stream has ended")
	}
	if len(w.during) != 2 || w.during[0].IsZero() || w.during[1].IsZero() {
		t.Errorf("deadlines during the writes: %v", w.during)
	}
	if !w.deadline.IsZero() {
		t.Errorf("after the event the deadline is %v", w.deadline)
	}
	if got := w.Body.String(); got != "part end\n" || !w.Flushed {
		t.Errorf("%q, flushed: %v", got, w.Flushed)
	}
}

// TestBytes: large documents are compressed for clients that accept that, and only
// for those.
func TestBytes(t *testing.T) {
	large := make([]byte, compressFrom)
	for _, tt := range []struct {
		name, accept string
		body         []byte
		encoding     string
	}{
		{"small", "gzip", []byte("{}"), ""},
		{"large", "deflate, gzip;q=0.5", large, "gzip"},
		{"large, refused", "gzip; q=0", large, ""},
		{"large, not accepted", "", large, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", tt.accept)
		w := httptest.NewRecorder()
		Bytes(w, r, http.StatusOK, tt.body)
		if got := w.Header().Get("Content-Encoding"); got != tt.encoding {
			t.Errorf("%s: encoding %q", tt.name, got)
		}
		if tt.encoding == "" && w.Body.Len() != len(tt.body) {
			t.Errorf("%s: %d bytes", tt.name, w.Body.Len())
		}
	}
}
