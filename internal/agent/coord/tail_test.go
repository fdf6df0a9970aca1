package coord

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/step"
)

// TestTailWaitsForTheScript: a client that comes before the batch script was started gets
// its output, not the answer that there is no script.
func TestTailWaitsForTheScript(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a"}}}, nil)
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.tail(step.NewConn(ours), &step.Frame{Type: step.FrameTail, Data: []byte("{}")})
		ours.Close()
	}()
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	conn := step.NewConn(theirs)
	// Only the waiting tail reads this frame, so it waits before the script is started.
	if err := conn.Send(&step.Frame{Type: step.FrameStdin}); err != nil {
		t.Fatal(err)
	}
	c.SetOutput(path, path)
	c.OutputComplete()
	var got []byte
	for {
		f, err := conn.Receive()
		if err != nil || f.Type == step.FrameRefused {
			t.Fatalf("%v, %+v", err, f)
		}
		if f.Type == step.FrameDone {
			break
		}
		if f.Type == step.FrameStdout {
			got = append(got, f.Data...)
		}
	}
	theirs.Close()
	<-done
	if string(got) != "hello" {
		t.Errorf("got %q", got)
	}
	// The tail ends when its client leaves before the script was started.
	c = New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a"}}}, nil)
	ours, theirs = net.Pipe()
	theirs.Close()
	c.tail(step.NewConn(ours), &step.Frame{Type: step.FrameTail, Data: []byte("{}")})
}
