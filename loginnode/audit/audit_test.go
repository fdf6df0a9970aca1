package audit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
)

// No value that a client chooses can control the terminal of a reader of the logs, nor
// fill the disk with one attempt.
func TestLogsContainNoControlCharacters(t *testing.T) {
	const hostile = "a\x1b]52;c;x\x07\x7f\u009b2J\u202eb\u2066c\u2028\nd\u00e9"
	var out bytes.Buffer
	l := New(&out, time.Now, func(err error) { t.Error(err) })
	l.Write(Record{Event: "login-failed", User: hostile, Client: strings.Repeat("x", 1<<18), Reason: hostile})
	slog.New(slog.NewJSONHandler(Printable(&out), nil)).Info(hostile, "user", hostile)
	for _, r := range out.String() {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			t.Errorf("%U is written unescaped", r)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r Record
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &r) != nil || r.User != hostile ||
		len(r.Client) > maxText+3 {
		t.Errorf("%d lines, %+v", len(lines), r)
	}
}
