package srun

import (
	"os"
	"testing"
	"time"
)

// TestForegroundReader checks that input is left unread while srun is in the
// background.
func TestForegroundReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("line"); err != nil {
		t.Fatal(err)
	}
	checks := 0
	reader := &foregroundReader{file: r, interval: time.Millisecond, foreground: func() bool {
		checks++
		return checks != 1 && checks != 3 // in the background first, and once more after the poll
	}}
	b := make([]byte, 10)
	n, err := reader.Read(b)
	if err != nil || string(b[:n]) != "line" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if checks != 5 {
		t.Errorf("the foreground was checked %d times, want 5", checks)
	}
}
