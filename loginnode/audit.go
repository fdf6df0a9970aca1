package loginnode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Record is a line of the audit log. Fields that say nothing are left out.
// Text that clients chose is inside JSON strings, so it cannot make lines or
// move a terminal's cursor.
type Record struct {
	Time time.Time `json:"time"`
	// Event: login, login-failed, logout, session-start, session-end,
	// session-failed, forward, refused, pod-retired, drain.
	Event  string `json:"event"`
	Conn   string `json:"conn,omitempty"` // the same for all of a connection
	User   string `json:"user,omitempty"`
	UID    *int   `json:"uid,omitempty"`
	Source string `json:"source,omitempty"`
	// Node, of a connection to a compute node; Through is the connection it
	// comes through, Job where its sessions run.
	Node    string `json:"node,omitempty"`
	Through string `json:"through,omitempty"`
	Job     int64  `json:"job,omitempty"`

	Method      string `json:"method,omitempty"`
	KeyType     string `json:"keyType,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	CertID      string `json:"certID,omitempty"`
	CertSerial  uint64 `json:"certSerial,omitempty"`
	By          string `json:"by,omitempty"` // the line or file that let it in
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

// audit writes records. It is safe for concurrent use; a nil writer drops them.
type audit struct {
	mu  sync.Mutex
	to  io.Writer
	now func() time.Time
	bad func(error)
}

// maxText cuts texts that clients choose: a user's name may have 256 kB before
// anybody has logged in.
const maxText = 4096

func (a *audit) write(r Record) {
	if a.to == nil {
		return
	}
	r.Time = a.now().UTC()
	for _, text := range []*string{&r.User, &r.Target, &r.Client, &r.Reason, &r.Command, &r.CertID} {
		*text = cut(*text)
	}
	line, err := json.Marshal(r)
	if err == nil {
		err = a.add(append(line, '\n'))
	}
	if err != nil {
		a.bad(err)
	}
}

// add writes a line. Should the writer panic, the others still get to it.
func (a *audit) add(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := Printable(a.to).Write(line)
	return err
}

func cut(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}

// Printable passes JSON on in which characters that steer a terminal, or turn
// the direction of a text, are written as \u and their number. encoding/json
// does so for those of ASCII only.
func Printable(w io.Writer) io.Writer { return printable{w} }

type printable struct{ to io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if !bytes.ContainsFunc(text, steers) {
		return p.to.Write(text)
	}
	out := make([]byte, 0, len(text)+64)
	for rest := text; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if steers(r) {
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

// steers tells of DEL, C1 and what Unicode has for directions and lines.
func steers(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x061c || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
