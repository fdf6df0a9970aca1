package tui

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// serveAgents makes serve handle connections to the agents of all jobs. It receives the client's
// request.
func serveAgents(t *testing.T, c *cluster, serve func(conn *step.Conn, request *step.Frame)) {
	c.attach = func(int64) (io.ReadWriteCloser, error) {
		client, server := net.Pipe()
		t.Cleanup(func() { client.Close(); server.Close() })
		go func() {
			conn := step.NewConn(server)
			defer conn.Close()
			if _, err := conn.Receive(); err != nil { // the Open
				return
			}
			if f, err := conn.Receive(); err == nil {
				serve(conn, f)
			}
		}()
		return client, nil
	}
}

func send(conn *step.Conn, typ step.Type, task uint32, text string) {
	_ = conn.Send(&step.Frame{Type: typ, Task: task, Data: []byte(text)}) // the test may have stopped reading
}

// The output comes from the job's agent if its file is not on this machine: both
// streams, and only for the user's own jobs.
func TestOutputFromTheAgent(t *testing.T) {
	c := site()
	stop := make(chan struct{})
	defer close(stop)
	serveAgents(t, c, func(conn *step.Conn, f *step.Frame) {
		var request step.Tail
		if f.Type != step.FrameTail || f.Decode(&request) != nil {
			return
		}
		if request.Errors {
			_ = conn.SendJSON(step.FrameTailStart, &step.TailStart{Path: "/scratch/x.err"})
			send(conn, step.FrameStdout, 0, "an error\n")
			send(conn, step.FrameDone, 0, "")
			return
		}
		_ = conn.SendJSON(step.FrameTailStart, &step.TailStart{Path: "/scratch/x.out"})
		send(conn, step.FrameStdout, 0, "first\nsec")
		send(conn, step.FrameStdout, 0, "ond\nthi\x1b[2Jrd\n")
		<-stop
	})
	j := c.jobs[101]
	j.StdOut, j.StdErr = "/no/such/dir/x.out", "/no/such/dir/x.err"
	c.Put(j)
	other := c.jobs[102]
	other.StdOut = "/no/such/dir/y.out"
	c.Put(other)
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys(":output 101<enter>")
	d.see("third")
	for _, text := range []string{"first\n", "second\n", "/scratch/x.out [from its agent] [following]"} {
		if !strings.Contains(d.screen(), text) {
			t.Errorf("no %q:\n%s", text, d.screen())
		}
	}
	d.keys("O")
	d.see("an error")
	d.see("/scratch/x.err [from its agent] [ended]")
	d.disappears("second")
	d.keys(":output 102<enter>")
	d.see("Only bob may read")
	if n := c.requests["attach"]; n != 2 {
		t.Errorf("%d connections to agents, want 2", n)
	}
}

// If the output has no source, the page shows the reason.
func TestOutputWithoutSource(t *testing.T) {
	c := site()
	j := c.jobs[101]
	j.StdOut = "/no/such/dir/x.out"
	c.Put(j)
	d := start(t, c, process(nil, nil), jobs.Screen{}, 140, 24)
	d.see("101")
	d.keys(":output 101<enter>")
	d.see("no such file or directory; reading it from the agent failed: permission denied")
	serveAgents(t, c, func(conn *step.Conn, _ *step.Frame) {
		send(conn, step.FrameRefused, 0, "/dev/null cannot be read a second time")
		send(conn, step.FrameDone, 0, "")
	})
	d.keys("O")
	d.keys("o")
	d.see("/dev/null cannot be read")
	d.keys(":output 131<enter>")
	d.see("The job has not started.")
}

// The page shows the output of all tasks of a step with their numbers, or that of
// one task.
func TestOutputOfTasks(t *testing.T) {
	c := site()
	c.steps = []status.Step{
		{ID: "101.batch", JobID: 101, Number: -5, Name: "batch", Tasks: 1},
		{ID: "101.3", JobID: 101, Number: 3, Name: "solver", Tasks: 12},
	}
	stop := make(chan struct{})
	defer close(stop)
	serveAgents(t, c, func(conn *step.Conn, f *step.Frame) {
		var request step.Attach
		if f.Type != step.FrameAttach || f.Decode(&request) != nil || request.StepID != 3 {
			return
		}
		_ = conn.SendJSON(step.FrameCreated, &step.Created{StepID: 3, Tasks: 12})
		send(conn, step.FrameStdout, 0, "zero\n")
		send(conn, step.FrameStdout, 11, "eleven\nmore of eleven\n")
		send(conn, step.FrameStderr, 2, "two fails\n")
		<-stop
	})
	j := c.jobs[101]
	j.StdOut = temp(t, "in the file\n")
	c.Put(j)
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys(":output 101<enter>")
	d.see("in the file")
	d.keys("i")
	d.see("solver, 12 tasks")
	choose := func(name string) {
		t.Helper()
		d.keys("<home>")
		for range 40 {
			for _, line := range strings.Split(d.screen(), "\n") {
				if strings.Contains(line, d.m.appearance.Cursor) && strings.Contains(line, name) {
					d.keys("<enter>")
					return
				}
			}
			d.keys("<down>")
		}
		t.Fatalf("%s is not offered:\n%s", name, d.screen())
	}
	choose("solver")
	d.see(" 2: two fails")
	for _, text := range []string{" 0: zero\n", "11: eleven\n", "11: more of eleven\n", "step 3 12 tasks [following]"} {
		if !strings.Contains(d.screen(), text) {
			t.Errorf("no %q:\n%s", text, d.screen())
		}
	}
	d.keys("i")
	d.see("solver, 12 tasks")
	choose("task 11")
	d.see("task 11 of 12")
	d.see("\neleven\nmore of eleven\n")
	d.disappears("zero")
	d.keys("K")
	d.see("sattach --label 101.3")
	d.keys("O")
	d.see("step 3 errors")
	d.keys("i")
	d.see("solver, 12 tasks")
	choose("solver")
	d.see(" 2: two fails")
	d.disappears("zero")
}

// The page of nodes shows changes by a single watch.
func TestNodesAreWatched(t *testing.T) {
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("2")
	d.see("bad disk")
	d.keys("/n5<enter>")
	d.see("1  drained 1 /n5")
	nodes := append([]status.Node(nil), c.nodes...)
	nodes[4].Flags, nodes[4].Reason = nil, ""
	c.PutNodes(nodes...)
	d.see("1  idle 1 /n5")
	c.PutNodes(nodes[:4]...)
	d.see("No node passes the filter.")
	c.Break(errors.New("the queue is unavailable"))
	d.see("not up to date: the queue is unavailable")
	c.Break(nil)
	c.PutNodes(nodes...)
	d.see("1  idle 1 /n5")
	if n := c.requests["watch nodes"]; n != 1 {
		t.Errorf("%d watches", n)
	}
}

// The pods of a job show why it does not start.
func TestPodsOfAJob(t *testing.T) {
	c := site()
	j := c.jobs[101]
	j.State, j.Reason = "CONFIGURING", "None"
	c.Put(j)
	c.pods = map[int64]*status.PodList{101: {Count: 3, Items: []status.Pod{
		{
			Name:    "j-101-1",
			Node:    "n2",
			Phase:   "Pending",
			Reason:  "ImagePullBackOff",
			Message: "Back-off pulling image \"no/such\x1b[2J\"",
			Events: []status.PodEvent{
				{Time: now - 30, Type: "Warning", Reason: "Failed", Message: "image not found", Count: 4}},
		},
		{Name: "j-101-0", Node: "n1", Phase: "Running"},
	}}}
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 40)
	d.see("101")
	d.keys(":job 101<enter>")
	d.see("! j-101-1 on n2: Pending, ImagePullBackOff")
	for _, text := range []string{"2 of 3 pods have no problem.", `Back-off pulling image "no/such\x1b[2J"`, "Failed (4 times): image not found"} {
		if !strings.Contains(d.screen(), text) {
			t.Errorf("no %q:\n%s", text, d.screen())
		}
	}
}

// The page shows each GPU that the agents report once.
func TestGPUsOfAJob(t *testing.T) {
	c := site()
	j := c.jobs[102]
	j.User = "alice"
	c.Put(j)
	serveAgents(t, c, func(conn *step.Conn, f *step.Frame) {
		var q step.Query
		if f.Type != step.FrameQuery || json.Unmarshal(f.Data, &q) != nil || !q.GPUs {
			return
		}
		u := step.Usage{Record: wire.StepRecord{Usage: wire.Usage{UserCPU: 5e6, RSS: wire.Measure{Total: 1 << 30}}}, GPUs: []step.GPU{
			{
				Node:   "n3",
				Index:  0,
				Name:   "A100",
				Busy:   90,
				Memory: 40 << 30,
				Total:  80 << 30,
			},
			{Node: "n3", Index: 1, Name: "A100", Busy: 0, Memory: 0, Total: 80 << 30},
		}}
		_ = conn.SendJSON(step.FrameUsage, &u)
		_ = conn.SendJSON(step.FrameUsage, &u) // of another step on that node
		send(conn, step.FrameDone, 0, "")
	})
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 60)
	d.see("102")
	d.keys(":job 102<enter>")
	d.see("45% of 2")
	for _, text := range []string{"n3:0   90%  40.0G of 80.0G  A100", "2 of its 8 GPUs are measured", "GPU 1 on n3 is idle at the moment."} {
		if !strings.Contains(d.screen(), text) {
			t.Errorf("no %q:\n%s", text, d.screen())
		}
	}
}

// The metrics API measures a job whose agents do not answer.
func TestUsageFromTheMetricsAPI(t *testing.T) {
	c := site()
	c.pods = map[int64]*status.PodList{
		101: {
			Count: 1,
			Items: []status.Pod{{Name: "web-0", Phase: "Running", Measured: now, CPU: 3000, Memory: 2 << 30}},
		},
	}
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 60)
	d.see("101")
	d.keys(":job 101<enter>")
	d.see("75% of 4 CPUs")
	d.see("2.0G of 8.0G\n")
}
