// Package response writes the responses of the queue API: JSON documents,
// Status objects for errors, and streams of JSON lines.
package response

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeTimeout ends a response whose client does not read.
const writeTimeout = 30 * time.Second

// JSON sends v as a JSON document, or a Status if v cannot be encoded.
func JSON(w http.ResponseWriter, r *http.Request, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		Error(w, r, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	Bytes(w, r, http.StatusOK, body)
}

// Error sends a Status object with the message.
func Error(w http.ResponseWriter, r *http.Request, code int, reason metav1.StatusReason, message string) {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	body, err := json.Marshal(&s)
	if err != nil {
		http.Error(w, message, code)
		return
	}
	Bytes(w, r, code, body)
}

// BadRequest sends a Status object for a request that cannot be parsed.
func BadRequest(w http.ResponseWriter, r *http.Request, err error) {
	Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
}

// NotFound sends a Status object for an object that does not exist.
func NotFound(w http.ResponseWriter, r *http.Request, err error) {
	Error(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, err.Error())
}

// Forbidden sends a Status object for a caller who lacks a right.
func Forbidden(w http.ResponseWriter, r *http.Request, err error) {
	Error(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
}

// Unavailable sends a Status object for a failure after which a retry may succeed.
func Unavailable(w http.ResponseWriter, r *http.Request, err error) {
	Error(w, r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
}

// compressFrom is the size in bytes from which compression saves time.
const compressFrom = 64 << 10

var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// Bytes sends a JSON document, compressed if it is large and the client accepts
// that. Nothing can be done about errors: the client is gone.
func Bytes(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	control := http.NewResponseController(w)
	if control.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil && r.ProtoMajor == 1 {
		// Under HTTP/1 the deadline is the connection's, which serves more requests.
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if len(body) < compressFrom || !acceptsGzip(r) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write(body)
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

// Buffer is a large byte slice from a pool.
type Buffer struct{ Bytes []byte }

var buffers = sync.Pool{New: func() any { return &Buffer{} }}

// maxPooled is the capacity in bytes above which a buffer is not reused.
const maxPooled = 32 << 20

// NewBuffer returns a buffer from the pool; its Bytes may have any content.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release returns the buffer to the pool. It must not be used afterwards.
func (b *Buffer) Release() {
	if cap(b.Bytes) <= maxPooled {
		buffers.Put(b)
	}
}
