package step

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// loopback is a connection that returns what was written to it.
type loopback struct{ bytes.Buffer }

func (*loopback) Close() error { return nil }

func TestSendReceive(t *testing.T) {
	var l loopback
	c := NewConn(&l)
	big := bytes.Repeat([]byte("x"), 3*MaxData+7)
	frames := []Frame{
		{Type: FrameStdin, Task: 7, Data: []byte("abc")}, {Type: FrameDone},
		{Type: FrameStdout, Flags: FlagPartial, Task: AllTasks, Data: big[:MaxData]},
		{Type: FrameStdin, Task: 2, Data: big},
		{Type: FrameLaunch, Data: big}, {Type: FrameStdinAck, Task: 1, Data: Count(99)},
	}
	for i := range frames {
		if err := c.Send(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range frames {
		f, err := c.Receive()
		if err != nil || f.Type != want.Type || f.Task != want.Task || f.Flags != want.Flags ||
			!bytes.Equal(f.Data, want.Data) {
			t.Fatalf("%+v, %v; want type %d", f, err, want.Type)
		}
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestSendRefusesTooLong(t *testing.T) {
	c := NewConn(&loopback{})
	if err := c.Send(&Frame{Type: FrameStdout, Data: make([]byte, MaxData+1)}); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
	if err := c.Send(&Frame{Type: 99, Data: []byte("x")}); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
}

// FuzzReceive checks that Receive returns a frame or an error for any input, and
// allocates no memory for bytes that did not arrive.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 0, 1, 255, 255, 255, 1})
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l loopback
		l.Write(b)
		c := NewConn(&l)
		for {
			fr, err := c.Receive()
			if err != nil {
				return
			}
			if len(fr.Data) > len(b) {
				t.Fatal("more data than bytes")
			}
		}
	})
}

func TestInputStaysWithinCredit(t *testing.T) {
	a, b := net.Pipe()
	client, agent := NewConn(a), NewConn(b)
	in := NewInput(client, []uint32{0, 1}, Window)
	data := bytes.Repeat([]byte("0123456789"), 30000)
	go in.Copy(bytes.NewReader(data), AllTasks)
	var got []byte
	unread := 0 // by task 0; task 1 has closed its input
	in.acknowledge(&Frame{Type: FrameStdinClosed, Task: 1})
	for {
		f, err := agent.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == FrameStdinEOF {
			break
		}
		got = append(got, f.Data...)
		unread += len(f.Data)
		if unread > Window {
			t.Fatalf("%d bytes beyond the credit", unread-Window)
		}
		if unread == Window || len(got) == len(data) {
			in.acknowledge(&Frame{Type: FrameStdinAck, Task: 0, Data: Count(uint32(unread))})
			unread = 0
		}
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d", len(got), len(data))
	}
}
