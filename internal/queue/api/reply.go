package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// compressFrom is the size from which compressing pays.
const compressFrom = 64 << 10

var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// reply sends a JSON body, compressed if it is large and the caller asks. A
// client that does not read is given up after patienceToSend.
func reply(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	control := http.NewResponseController(w)
	if control.SetWriteDeadline(time.Now().Add(patienceToSend)) == nil && r.ProtoMajor == 1 {
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection serves others
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if len(body) < compressFrom || !acceptsGzip(r) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write(body) // nobody is left to tell
		return
	}
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	w.WriteHeader(code)
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

func acceptsGzip(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept-Encoding") {
		for s := range strings.SplitSeq(v, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(s), ";")
			if strings.EqualFold(name, "gzip") && strings.ReplaceAll(params, " ", "") != "q=0" {
				return true
			}
		}
	}
	return false
}

// buffer is a large byte slice that is used again.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// maxKept bounds what the pool holds on to.
const maxKept = 32 << 20

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) release() {
	if cap(b.bytes) <= maxKept {
		buffers.Put(b)
	}
}
