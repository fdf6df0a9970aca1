package logfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func text(t *testing.T, l *Log, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Copy(context.Background(), o, &b, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCopy(t *testing.T) {
	l, err := Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	out, errs := l.Stream("stdout"), l.Stream("stderr")
	fmt.Fprint(out, "one\ntw")
	fmt.Fprint(out, "o\n")
	fmt.Fprint(errs, "three\n")
	middle := time.Now()
	fmt.Fprint(out, "four")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Tail: -1}, "one\ntwo\nthree\nfour"},
		{Options{Tail: 2}, "three\nfour"},
		{Options{Tail: 3}, "two\nthree\nfour"},
		{Options{Tail: 0}, ""},
		{Options{Tail: -1, Limit: 5}, "one\nt"},
		{Options{Tail: -1, Since: middle}, "four"},
	} {
		if got := text(t, l, c.o); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	for line := range strings.Lines(text(t, l, Options{Tail: -1, Timestamps: true})) {
		if _, err := time.Parse(time.RFC3339Nano, strings.Fields(line)[0]); err != nil {
			t.Error(err)
		}
	}
	var only bytes.Buffer
	if err := l.Copy(context.Background(), Options{Tail: -1}, nil, &only); err != nil || only.String() != "three\n" {
		t.Errorf("stderr alone: %q, %v", only.String(), err)
	}
}

func TestFollowReadsAllAcrossRotation(t *testing.T) {
	l, err := Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(l.Copy(context.Background(), Options{Follow: true, Tail: -1}, w, w))
	}()
	line := strings.Repeat("x", 64<<10) + "\n"
	var total int
	buf := make([]byte, len(line))
	for range maxSize/len(line) + 20 {
		if _, err := io.WriteString(l.Stream("stdout"), line); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, buf); err != nil || string(buf) != line {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		total += len(line)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %d bytes, %v", len(rest), err)
	}
	if got := len(text(t, l, Options{Tail: -1})); got != total {
		t.Errorf("both files contain %d of %d bytes", got, total)
	}
}

func TestFollowerReadsWhatIsWrittenBeforeCopy(t *testing.T) {
	l, err := Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(l.Stream("stdout"), "before\n")
	f, err := l.Follow()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(l.Stream("stdout"), "answer\n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Copy(context.Background(), &out, nil); err != nil || out.String() != "answer\n" {
		t.Errorf("copied %q, %v", out.String(), err)
	}
}
