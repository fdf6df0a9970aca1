package bcast

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/step"
)

// agent acts as the agent of a job on two nodes. It returns the request, and the bytes that each
// task received, after the client has sent the whole file. answer sends the ends of the tasks.
func agent(t *testing.T, conn *step.Conn, refuse string, answer func()) (req *step.Request, input []byte) {
	t.Helper()
	req = &step.Request{}
	if err := conn.Expect(step.FrameRequest, req); err != nil {
		t.Error(err)
		return req, nil
	}
	if refuse != "" {
		_ = conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(refuse)})
		return req, nil
	}
	_ = conn.SendJSON(step.FrameCreated, &step.Created{StepID: 5, Nodes: []string{"n1", "n2"}, Tasks: 2, TaskNode: []int32{0, 1}})
	for {
		f, err := conn.Receive()
		if err != nil {
			t.Error(err)
			return req, input
		}
		if f.Type == step.FrameStdinEOF {
			break
		}
		input = append(input, f.Data...)
		for task := range uint32(2) {
			_ = conn.Send(&step.Frame{Type: step.FrameStdinAck, Task: task, Data: step.Count(uint32(len(f.Data)))})
		}
	}
	answer()
	_ = conn.Send(&step.Frame{Type: step.FrameDone})
	return req, input
}

// result is what a call of Send returned and reported.
type result struct {
	id, code int
	err      error
	lines    []string
	req      *step.Request
	input    []byte
}

// send sends the contents to an agent, which answers.
func send(t *testing.T, contents []byte, spec *step.FileSpec, refuse string, answer func(*step.Conn)) result {
	t.Helper()
	a, b := net.Pipe()
	client, server := step.NewConn(a), step.NewConn(b)
	t.Cleanup(func() { client.Close(); server.Close() }) //nolint:errcheck // they never fail
	var r result
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.req, r.input = agent(t, server, refuse, func() { answer(server) })
	}()
	id, code, err := Send(client, &Destination{JobID: 7, Nodes: []string{"n1", "n2"}}, bytes.NewReader(contents), spec,
		func(line string) { r.lines = append(r.lines, line) })
	<-done
	r.id, r.code, r.err = int(id), code, err
	return r
}

// exits sends the end of a task with an exit code, and what it printed.
func exits(c *step.Conn, task uint32, code uint32, text string) {
	if text != "" {
		_ = c.Send(&step.Frame{Type: step.FrameStderr, Task: task, Data: []byte(text)})
	}
	_ = c.SendJSON(step.FrameExit, &step.Exit{Tasks: []uint32{task}, Status: code << 8})
}

// TestSendReportsEachNode: the exit code is the highest of a node, and each node that failed
// has a line.
func TestSendReportsEachNode(t *testing.T) {
	contents := bytes.Repeat([]byte("0123456789abcdef"), 50_000)
	for name, tt := range map[string]struct {
		answer func(*step.Conn)
		code   int
		lines  []string
	}{
		"every node has it": {func(c *step.Conn) { exits(c, 0, 0, ""); exits(c, 1, 0, "") }, 0, nil},
		"one fails": {func(c *step.Conn) { exits(c, 1, 17, "File exists\n"); exits(c, 0, 0, "") }, 17,
			[]string{"REQUEST_FILE_BCAST(n2): File exists"}},
		"both fail": {func(c *step.Conn) { exits(c, 0, 2, "No such file or directory\n"); exits(c, 1, 28, "No space left\n") }, 28,
			[]string{"REQUEST_FILE_BCAST(n1): No such file or directory", "REQUEST_FILE_BCAST(n2): No space left"}},
		"one is lost": {func(c *step.Conn) { exits(c, 0, 0, ""); _ = c.SendJSON(step.FrameNodeLost, &step.NodeLost{Node: 1}) }, 1,
			[]string{"a node of the job was lost"}},
		"a task that does not exist": {func(c *step.Conn) { exits(c, 99, 0, "text of an unknown task\n") }, 0, nil},
		"a malformed end":            {func(c *step.Conn) { _ = c.Send(&step.Frame{Type: step.FrameExit, Data: []byte("{")}) }, 1, nil},
	} {
		r := send(t, contents, &step.FileSpec{Path: "/tmp/x", Size: int64(len(contents))}, "", tt.answer)
		if r.err != nil || r.id != 5 || r.code != tt.code || !slices.Equal(r.lines, tt.lines) || !bytes.Equal(r.input, contents) {
			t.Errorf("%s: step %d, code %d, %v, lines %q, %d bytes arrived", name, r.id, r.code, r.err, r.lines, len(r.input))
		}
		if q := r.req; q == nil || q.JobID != 7 || !q.Hidden || !q.Overlap || q.Shape.Nodes != 2 || q.Command.Stdin != step.StdinAll || q.Command.Receive.Path != "/tmp/x" {
			t.Errorf("%s: the request was %+v", name, q)
		}
	}
}

// TestSendCompressed: with Compressed, what is sent is shorter and unpacks to the file.
func TestSendCompressed(t *testing.T) {
	contents := bytes.Repeat([]byte("the same line again\n"), 20_000)
	r := send(t, contents, &step.FileSpec{Compressed: true}, "", func(c *step.Conn) { exits(c, 0, 0, ""); exits(c, 1, 0, "") })
	if r.err != nil || r.code != 0 || len(r.input) >= len(contents)/10 {
		t.Fatalf("%v, code %d, %d bytes for %d", r.err, r.code, len(r.input), len(contents))
	}
	z, err := zstd.NewReader(bytes.NewReader(r.input))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, contents) {
		t.Errorf("%d bytes unpacked of %d, %v", len(got), len(contents), err)
	}
}

// TestRefusedSend: a refusal of the step is the error, and nothing is sent.
func TestRefusedSend(t *testing.T) {
	r := send(t, []byte("x"), &step.FileSpec{}, "Job/step already completing or completed", nil)
	var refused *step.RefusedError
	if !errors.As(r.err, &refused) || refused.Error() != "Job/step already completing or completed" || r.code != 1 || len(r.input) != 0 {
		t.Errorf("%v, code %d, %d bytes", r.err, r.code, len(r.input))
	}
}

// TestSendOverABrokenConnection: the error is ErrLost.
func TestSendOverABrokenConnection(t *testing.T) {
	r := send(t, []byte("x"), &step.FileSpec{}, "", func(c *step.Conn) { _ = c.Close() })
	if !errors.Is(r.err, step.ErrLost) || r.id != 5 {
		t.Errorf("%v, step %d", r.err, r.id)
	}
}

// TestDescribe: the description has the size, checksum and mode, and the file is read from its
// start afterwards.
func TestDescribe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("123456789"), 0o640); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	spec, err := Describe(f)
	const crc32c = "e3069283" // the check value of CRC-32C
	if err != nil || spec.Size != 9 || spec.Checksum != crc32c || spec.Mode != 0o640 || spec.Path != "" {
		t.Errorf("%+v, %v", spec, err)
	}
	if rest, _ := io.ReadAll(f); string(rest) != "123456789" {
		t.Errorf("%q is left", rest)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if spec := DescribeEmpty(st); spec.Size != 0 || spec.Checksum != hex.EncodeToString(make([]byte, 4)) || spec.Mode != 0o640 {
		t.Errorf("of an empty file: %+v", spec)
	}
}

// TestSendToNodesThatHaveTheFile: tasks that close their input get one frame, and no end.
func TestSendToNodesThatHaveTheFile(t *testing.T) {
	a, b := net.Pipe()
	client, server := step.NewConn(a), step.NewConn(b)
	defer server.Close() //nolint:errcheck // it never fails
	defer client.Close() //nolint:errcheck // as above
	received := make(chan int, 1)
	go func() {
		req := &step.Request{}
		if err := server.Expect(step.FrameRequest, req); err != nil || req.Command.Receive.Token == "" {
			t.Errorf("%+v, %v", req.Command.Receive, err)
		}
		_ = server.SendJSON(step.FrameCreated, &step.Created{
			StepID: 5, Nodes: []string{"n1", "n2"}, Tasks: 2, TaskNode: []int32{0, 1}, MaxInput: step.MaxInput,
		})
		f, err := server.Receive()
		if err != nil {
			t.Error(err)
			return
		}
		received <- len(f.Data)
		for task := range uint32(2) {
			_ = server.Send(&step.Frame{Type: step.FrameStdinClosed, Task: task})
			exits(server, task, 0, "")
		}
		_ = server.Send(&step.Frame{Type: step.FrameDone})
		if f, err := server.Receive(); err == nil {
			t.Errorf("then a frame of type %d, %d bytes", f.Type, len(f.Data))
		}
	}()
	_, code, err := Send(client, &Destination{}, bytes.NewReader(make([]byte, 3*step.MaxInput)), &step.FileSpec{}, nil)
	if n := <-received; err != nil || code != 0 || n != step.MaxData {
		t.Errorf("code %d, %v, %d bytes", code, err, n)
	}
}
