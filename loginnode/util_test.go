package loginnode_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// lockedBuffer is a buffer that two goroutines use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type recorder struct {
	io.Writer
	header http.Header
	status int
}

func newRecorder(w io.Writer) *recorder { return &recorder{Writer: w, header: http.Header{}} }

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }

func request(t testing.TB, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func marshalKey(k ssh.PublicKey) []byte { return ssh.MarshalAuthorizedKey(k) }
