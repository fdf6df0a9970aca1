package srun

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/option"
)

// ends are wait statuses of the tasks of a step, in order, and the output and exit code of
// srun 22.05.8.
var ends = []struct {
	name    string
	tasks   []uint32
	aborted bool // by scancel, after the first task
	quiet   int
	output  string // lines without "srun: ", by |
	code    int
}{
	{"killed", []uint32{9}, false, 0, "error: n1: task 0: Killed|Force Terminated StepId=7.3", 137},
	{"terminated", []uint32{15, 15}, false, 0, "error: n1: tasks 0-1: Terminated|Force Terminated StepId=7.3", 143},
	{"hangup", []uint32{1}, false, 0, "error: n1: task 0: Hangup", 129},
	{"interrupt", []uint32{2}, false, 0, "error: n1: task 0: Interrupt", 130},
	{"abort", []uint32{6}, false, 0, "error: n1: task 0: Aborted", 134},
	{"user", []uint32{10}, false, 0, "error: n1: task 0: User defined signal 1", 138},
	{"fault", []uint32{11}, false, 0, "error: n1: task 0: Segmentation fault", 139},
	{"code like a signal", []uint32{137 << 8}, false, 0, "error: n1: task 0: Exited with exit code 137", 137},
	{"the last line is last", []uint32{11, 9, 1 << 8}, false, 0,
		"error: n1: task 0: Segmentation fault|error: n1: task 1: Killed|" +
			"error: n1: task 2: Exited with exit code 1|Force Terminated StepId=7.3", 139},
	{"quiet", []uint32{9}, false, 1, "error: n1: task 0: Killed", 137},
	{"quieter", []uint32{9}, false, 2, "", 137},
	{"cancelled", []uint32{9, 9}, true, 0,
		"error: n1: task 0: Killed|Job step aborted: Waiting up to 7 seconds for job step to finish.|" +
			"error: n1: task 1: Killed", 137},
}

func TestEndsAsRecorded(t *testing.T) {
	for _, c := range ends {
		t.Run(c.name, func(t *testing.T) {
			var output bytes.Buffer
			o := New(newProcess(&output), nil)
			r := &run{
				o: o, parsed: &option.Parsed{Client: option.Client{Quiet: c.quiet}}, quiet: c.quiet > 0,
				req: &step.Request{JobID: 7},
			}
			r.all = &steps{o: o, parts: []*run{r}}
			r.created = &step.Created{
				StepID: 3, Tasks: uint32(len(c.tasks)), Nodes: []string{"n1"}, TaskNode: make([]int32, len(c.tasks)),
			}
			r.exits.init(r.created)
			for task, status := range c.tasks {
				if task == 1 && c.aborted {
					r.exits.flush(r)
					r.aborted(&step.Aborted{Seconds: 7})
				}
				r.exited(&step.Exit{Tasks: []uint32{uint32(task)}, Status: status})
			}
			if code := r.all.finish(); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
			lines := slices.DeleteFunc(strings.Split(output.String(), "\n"), func(l string) bool { return l == "" })
			if got := strings.ReplaceAll(strings.Join(lines, "|"), "srun: ", ""); got != c.output {
				t.Errorf("output %q\nwant %q", got, c.output)
			}
		})
	}
}

// TestLostNodeIsNotForced checks that srun does not report a step as terminated by force if its
// task was lost with a node.
func TestLostNodeIsNotForced(t *testing.T) {
	var output bytes.Buffer
	o := New(newProcess(&output), nil)
	r := &run{o: o, parsed: &option.Parsed{}, req: &step.Request{JobID: 7}}
	r.all = &steps{o: o, parts: []*run{r}}
	r.created = &step.Created{Tasks: 1, Nodes: []string{"n1"}, TaskNode: []int32{0}}
	r.exits.init(r.created)
	r.nodeLost(&step.NodeLost{})
	if code := r.all.finish(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("code %d", code)
	}
	if want := "srun: error: Node failure on n1\n"; output.String() != want {
		t.Errorf("output %q, want %q", output.String(), want)
	}
}

// newProcess returns a process without an environment.
func newProcess(w io.Writer) *stdio.Process {
	return &stdio.Process{
		Streams:   stdio.Streams{Err: w},
		LookupEnv: func(string) (string, bool) { return "", false },
		Environ:   func() []string { return nil },
	}
}
