package loginnode

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Record is a line of the audit log. Fields that say nothing are left out.
// Text that clients chose is inside JSON strings, so it cannot make lines or
// move a terminal's cursor.
type Record struct {
	Time time.Time `json:"time"`
	// Event: login, login-failed, logout, session-start, session-end,
	// session-failed, forward, refused, drain.
	Event  string `json:"event"`
	Conn   string `json:"conn,omitempty"` // the same for all of a connection
	User   string `json:"user,omitempty"`
	UID    *int   `json:"uid,omitempty"`
	Source string `json:"source,omitempty"`

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

// maxCommand cuts commands in the audit log.
const maxCommand = 4096

func (a *audit) write(r Record) {
	if a.to == nil {
		return
	}
	r.Time = a.now().UTC()
	r.Command = cut(r.Command)
	line, err := json.Marshal(r)
	if err == nil {
		a.mu.Lock()
		_, err = a.to.Write(append(line, '\n'))
		a.mu.Unlock()
	}
	if err != nil {
		a.bad(err)
	}
}

func cut(s string) string {
	if len(s) > maxCommand {
		return s[:maxCommand] + "..."
	}
	return s
}
