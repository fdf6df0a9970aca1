// Package audit writes the audit log of the login node: one JSON object a line, in
// which no text of a client can break a line or control a terminal.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Record is a line of the audit log. Empty fields are left out. Text from clients is
// inside JSON strings, so it cannot break lines or control a terminal.
type Record struct {
	Time time.Time `json:"time"`
	// Event: login, login-failed, logout, session-start, session-end,
	// session-failed, forward, refused, revoked, pod-retired, drain.
	Event  string `json:"event"`
	Conn   string `json:"conn,omitempty"` // the id of the connection
	User   string `json:"user,omitempty"`
	UID    *int   `json:"uid,omitempty"`
	Source string `json:"source,omitempty"`
	// Node is the compute node of a connection to one, Through the connection that
	// carries it, and Job the job in which its sessions run.
	Node    string `json:"node,omitempty"`
	Through string `json:"through,omitempty"`
	Job     int64  `json:"job,omitempty"`

	Method      string `json:"method,omitempty"`
	KeyType     string `json:"keyType,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	CertID      string `json:"certID,omitempty"`
	CertSerial  uint64 `json:"certSerial,omitempty"`
	By          string `json:"by,omitempty"` // the line or file that allowed the login
	Client      string `json:"client,omitempty"`

	Kind    string `json:"kind,omitempty"`
	Command string `json:"command,omitempty"`
	Forced  string `json:"forced,omitempty"`
	TTY     string `json:"tty,omitempty"`
	Target  string `json:"target,omitempty"`

	Exit     *int    `json:"exit,omitempty"`
	Signal   string  `json:"signal,omitempty"`
	BytesIn  int64   `json:"bytesIn,omitempty"`
	BytesOut int64   `json:"bytesOut,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
	Reason   string  `json:"reason,omitempty"`
}

// Log is an audit log. It is safe for concurrent use; a nil Log discards records.
type Log struct {
	mu      sync.Mutex
	to      io.Writer
	now     func() time.Time
	onError func(error)
}

// New returns a log that writes to a writer, or discards records if that is nil.
// onError is called if a record cannot be written.
func New(to io.Writer, now func() time.Time, onError func(error)) *Log {
	return &Log{to: to, now: now, onError: onError}
}

// maxText bounds texts from clients: before the login, a user name may have 256 kB.
const maxText = 4096

// Write writes a record with the present time.
func (l *Log) Write(r Record) {
	if l == nil || l.to == nil {
		return
	}
	r.Time = l.now().UTC()
	for _, text := range []*string{&r.User, &r.Target, &r.Client, &r.Reason, &r.Command, &r.CertID} {
		*text = Truncate(*text)
	}
	line, err := json.Marshal(r)
	if err == nil {
		err = l.writeLine(append(line, '\n'))
	}
	if err != nil {
		l.onError(err)
	}
}

// writeLine writes a line. It releases the lock also if the writer panics.
func (l *Log) writeLine(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := Printable(l.to).Write(line)
	return err
}

// Truncate returns at most maxText bytes of a text from a client.
func Truncate(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}

// Printable returns a writer that escapes in JSON the characters that control a
// terminal or the direction of text. encoding/json does so only for ASCII.
func Printable(w io.Writer) io.Writer { return printable{w} }

type printable struct{ to io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if !bytes.ContainsFunc(text, IsControl) {
		return p.to.Write(text)
	}
	out := make([]byte, 0, len(text)+64)
	for rest := text; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if IsControl(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// IsControl reports whether r is DEL, a C1 control character, or one of Unicode's
// characters for text direction and line separation.
func IsControl(r rune) bool {
	switch {
	case r >= 0x7f && r <= 0x9f, r == 0x061c, r >= 0x200e && r <= 0x200f, r >= 0x2028 && r <= 0x202e,
		r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}
