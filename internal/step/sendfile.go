package step

import (
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// NewSum is the sum by which a node sees that a file came as it was sent. It is
// against faults, not against people: nobody else can write to the connections,
// and each record on them between nodes is authenticated already. So it is one
// that costs next to nothing.
func NewSum() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// Describe reads all of an open regular file and goes back to its begin. The
// place is left to the caller.
func Describe(file *os.File) (*Receive, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	sum := NewSum()
	n, err := io.Copy(sum, file)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	return &Receive{Size: n, Sum: hex.EncodeToString(sum.Sum(nil)), Mode: uint32(st.Mode().Perm())}, nil
}

// Empty is what nodes are to make of a file without contents.
func Empty(st os.FileInfo) *Receive {
	return &Receive{Sum: hex.EncodeToString(NewSum().Sum(nil)), Mode: uint32(st.Mode().Perm())}
}

// Destination is where SendFile sends a file.
type Destination struct {
	JobID int64    // 0: that of the connection
	Nodes []string // nil: all of the job
}

// SendFile has every node of to make a file of what it reads, in a step that
// nobody sees and whose number it returns. conn is new and stays the caller's.
// Lines about nodes that failed, as Slurm words them, go to say. code is the
// exit code: the number of the system's error on a node, 1 where it has none, 0
// where every node has the file. The error is *Impossible where there was no
// step.
func SendFile(conn *Conn, to *Destination, file io.Reader, r *Receive, say func(line string)) (id int32, code int, err error) {
	c, err := askFile(conn, to, r)
	if err != nil {
		return 0, 1, err
	}
	tasks := make([]uint32, c.Tasks)
	for t := range tasks {
		tasks[t] = uint32(t)
	}
	if r.Compressed {
		var stop func()
		file, stop = compressed(file)
		defer stop()
	}
	in := NewInput(conn, tasks, FileWindow)
	go in.Copy(file, AllTasks)
	err = Follow(conn, in, func(f *Frame) error {
		switch f.Type {
		case FrameStderr:
			if int(f.Task) < len(c.TaskNode) && int(c.TaskNode[f.Task]) < len(c.Nodes) {
				say(fmt.Sprintf("REQUEST_FILE_BCAST(%s): %s", c.Nodes[c.TaskNode[f.Task]], trimmed(f.Data)))
			}
		case FrameExit:
			var e Exit
			if f.Decode(&e) != nil {
				e.Status = 1 << 8
			}
			code = max(code, Code(e.Status))
		case FrameNodeLost:
			code = max(code, 1)
			say("a node of the job was lost")
		}
		return nil
	})
	return c.StepID, code, err
}

func trimmed(b []byte) string {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return string(b)
}

// askFile asks for the step of SendFile.
func askFile(conn *Conn, to *Destination, r *Receive) (*Created, error) {
	req := &Request{
		JobID: to.JobID, Overlap: true, Hidden: true, Shape: Shape{NodeList: to.Nodes, Nodes: int32(len(to.Nodes)), MaxNodes: int32(len(to.Nodes))},
		Command: Command{Args: []string{"sbcast"}, Dir: "/", Umask: -1, Stdin: StdinAll, Receive: r},
	}
	if err := conn.SendJSON(FrameRequest, req); err != nil {
		return nil, err
	}
	f, err := conn.Receive()
	if err != nil {
		return nil, err
	}
	if f.Type == FrameRefused {
		return nil, &Impossible{Line: []string{string(f.Data)}}
	}
	var c Created
	return &c, f.Decode(&c)
}

// compressed is r compressed, until stop.
func compressed(r io.Reader) (out io.Reader, stop func()) {
	pr, pw := io.Pipe()
	go func() {
		w, err := zstd.NewWriter(pw, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
		if err == nil {
			_, err = io.Copy(w, r)
			if e := w.Close(); err == nil {
				err = e
			}
		}
		pw.CloseWithError(err) //nolint:errcheck // it never fails
	}()
	return pr, func() { pr.Close() } //nolint:errcheck // it never fails
}
