// Package bcast sends a file to every node of a job (sbcast, srun --bcast). The bytes are
// the input of a hidden step, so the agents forward them along their tree.
package bcast

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/step"
)

// NewChecksum returns the hash by which a node verifies that a file arrived
// undamaged. A cheap checksum is enough, because it has to detect faults and not attacks:
// only the job's user can write to the connections, and between nodes TLS authenticates
// them.
func NewChecksum() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// Describe reads an open regular file and returns its description, without a
// path. It seeks back to the start of the file.
func Describe(file *os.File) (*step.FileSpec, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	checksum := NewChecksum()
	// Hiding the other methods of the file makes CopyBuffer use the buffer.
	n, err := io.CopyBuffer(checksum, struct{ io.Reader }{file}, make([]byte, readSize))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	return &step.FileSpec{
		Size: n, Checksum: hex.EncodeToString(checksum.Sum(nil)), Mode: uint32(st.Mode().Perm()),
		Source: identify(file, st),
	}, nil
}

// readSize is the size of the buffer of Describe. Its contents fit into a processor's cache.
const readSize = 256 << 10

// DescribeEmpty returns the description of a file without contents.
func DescribeEmpty(st os.FileInfo) *step.FileSpec {
	return &step.FileSpec{Checksum: hex.EncodeToString(NewChecksum().Sum(nil)), Mode: uint32(st.Mode().Perm())}
}

// Destination is where Send sends a file.
type Destination struct {
	JobID int64    // 0: the job of the connection
	Nodes []string // nil: all nodes of the job
}

// Send sends a file to the nodes of to and returns the number of the hidden step that did
// it. conn must be new; the caller closes it. Send calls report with a line in Slurm's
// words for each node that failed. code is the exit code of the command: 0 if every node
// has the file, else the highest errno of a node, or 1 if there is none. The error is a
// *step.RefusedError if the step was refused.
func Send(
	conn *step.Conn, to *Destination, file io.Reader, spec *step.FileSpec, report func(line string),
) (id int32, code int, err error) {
	created, err := requestStep(conn, to, spec)
	if err != nil {
		return 0, 1, err
	}
	tasks := make([]uint32, created.Tasks)
	for t := range tasks {
		tasks[t] = uint32(t)
	}
	if spec.Compressed {
		var stop func()
		file, stop = compress(file)
		defer stop()
	}
	in := step.NewInput(conn, tasks, step.FileWindow)
	in.Piece = min(max(in.Piece, int(created.MaxInput)), step.MaxInput)
	go in.Copy(file, step.AllTasks)
	err = step.Follow(conn, in, func(f *step.Frame) error {
		switch f.Type {
		case step.FrameStderr:
			if int(f.Task) < len(created.TaskNode) && int(created.TaskNode[f.Task]) < len(created.Nodes) {
				node := created.Nodes[created.TaskNode[f.Task]]
				report(fmt.Sprintf("REQUEST_FILE_BCAST(%s): %s", node, bytes.TrimRight(f.Data, "\n")))
			}
		case step.FrameExit:
			var e step.Exit
			if f.Decode(&e) != nil {
				e.Status = 1 << 8
			}
			code = max(code, step.ExitCode(e.Status))
		case step.FrameNodeLost:
			code = max(code, 1)
			report("a node of the job was lost")
		}
		return nil
	})
	return created.StepID, code, err
}

// requestStep creates the hidden step whose tasks write the file.
func requestStep(conn *step.Conn, to *Destination, spec *step.FileSpec) (*step.Created, error) {
	receive := *spec
	receive.Token = rand.Text()
	req := &step.Request{
		JobID: to.JobID, Overlap: true, Hidden: true,
		Shape: step.Shape{NodeList: to.Nodes, Nodes: int32(len(to.Nodes)), MaxNodes: int32(len(to.Nodes))},
		Command: step.Command{
			Args: []string{"sbcast"}, Dir: "/", Umask: -1, Stdin: step.StdinAll, Receive: &receive,
		},
	}
	if err := conn.SendJSON(step.FrameRequest, req); err != nil {
		return nil, err
	}
	f, err := conn.Receive()
	if err != nil {
		return nil, err
	}
	if f.Type == step.FrameRefused {
		return nil, step.Refuse(string(f.Data))
	}
	var created step.Created
	return &created, f.Decode(&created)
}

// compress returns a reader of r's contents as zstd frames. stop ends the
// compression.
func compress(r io.Reader) (out io.Reader, stop func()) {
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
