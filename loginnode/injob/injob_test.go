package injob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"bufio"
)

// program runs Main in this process.
func program(t *testing.T, port string) (*Stream, error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		Main([]string{port}, inR, outW)
		outW.Close()
		inR.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return Join(ctx, outR, inW, func() { inW.Close(); outR.Close() })
}

// Every byte arrives in both directions, and each direction ends by itself.
func TestDirectionsEndOneByOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := bytes.Repeat([]byte("\x00\xff\r\nframe"), 1<<17)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		got, _ := io.ReadAll(c)
		_, _ = c.Write(got)
		c.Close()
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s, err := program(t, port)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = s.Write(data)
		_ = s.CloseWrite()
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes came back, %v", len(got), len(data), err)
	}
	l.Close()
	var refused Refused
	if _, err := program(t, port); !errors.As(err, &refused) || refused != "connection refused" {
		t.Errorf("a port without a listener: %v", err)
	}
}

// Join returns an error when its context ends before the program has responded, or if the
// response is malformed.
func TestJoinGivesUp(t *testing.T) {
	out, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Join(ctx, out, io.Discard, func() { out.Close() }); err == nil {
		t.Error("there is no error without a response")
	}
	for _, text := range []string{"", "\x00", "Welcome\n", "\x00\x00", "\x00\x01x", "\x00\x02+x"} {
		if _, err := Join(t.Context(), strings.NewReader(text), io.Discard, func() {}); err == nil {
			t.Errorf("%q counts as a response", text)
		}
	}
}

// For any input from a job, the bytes of the frames are read in order, and only an end frame ends
// them.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x01+\x00\x02ab\x00\x00"))
	f.Add([]byte("\x00\x05-gone"))
	f.Add([]byte("\xff\xffx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := io.ReadAll(&reader{from: bufio.NewReader(bytes.NewReader(data))})
		var again bytes.Buffer
		w := &writer{to: &again}
		if _, werr := w.Write(got); werr != nil || w.end() != nil {
			t.Fatal(werr)
		}
		back, berr := io.ReadAll(&reader{from: bufio.NewReader(&again)})
		if berr != nil || !bytes.Equal(back, got) || len(got) > len(data) {
			t.Errorf("%q: %q, %q, %v", data, got, back, berr)
		}
		if err == nil && !bytes.Contains(data, []byte{0, 0}) {
			t.Errorf("%q: the end is read without an end frame", data)
		}
		if s, err := Join(t.Context(), bytes.NewReader(data), io.Discard, func() {}); (err == nil) != bytes.HasPrefix(data, []byte("\x00\x01+")) {
			t.Errorf("%q: %v, %v", data, s, err)
		}
	})
}
