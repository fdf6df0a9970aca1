package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// socketOf returns the path of the socket of a job's first agent.
func socketOf(t *testing.T, g *gang) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(g.tmp[0], "berth-*", "step.sock"))
	if err != nil || len(found) != 1 {
		t.Fatalf("sockets %v: %v", found, err)
	}
	return found[0]
}

// tail follows an output file of the job and returns what it received: the starts of
// contents in brackets, and the bytes.
func tail(t *testing.T, g *gang, request step.Tail, seen func(text string)) (text, refused string) {
	t.Helper()
	conn, err := step.Dial(t.Context(), socketOf(t, g))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SendJSON(step.FrameTail, &request); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err = step.Follow(conn, nil, func(f *step.Frame) error {
		switch f.Type {
		case step.FrameTailStart:
			var at step.TailStart
			if err := f.Decode(&at); err != nil {
				return err
			}
			b.WriteString("[" + filepath.Base(at.Path) + " " + itoa(at.From) + "]")
		case step.FrameStdout:
			b.Write(f.Data)
		case step.FrameRefused:
			refused = string(f.Data)
		}
		if seen != nil {
			seen(b.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), refused
}

// TestTailOutput checks that a client gets the contents of the file and what is appended,
// the whole file again after it was truncated, and the end of the job.
func TestTailOutput(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{
			cpus: []int32{1},
			script: "#!/bin/sh\necho first\necho bad >&2\nwhile [ ! -e cut ]; do sleep 0.05; done\n: > out.txt\n" +
				"while [ ! -e go ]; do sleep 0.05; done\necho second\n",
			job: func(j *job.Job) { j.Batch.Output, j.Batch.Error = "out.txt", "err.txt" },
		},
	)
	waitFor(t, filepath.Join(g.dir, "err.txt"), "bad")
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(g.dir, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	text, _ := tail(t, g, step.Tail{}, func(text string) {
		switch {
		case strings.HasSuffix(text, "first\n"):
			touch("cut")
		case strings.HasSuffix(text, "first\n[out.txt 0]"):
			touch("go")
		}
	})
	if want := "[out.txt 0]first\n[out.txt 0]second\n"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if r := g.report(wire.ReportEnded, wire.ReportFailed); r.Kind != wire.ReportEnded {
		t.Errorf("%+v", r)
	}
}

// TestTailErrors checks the last bytes of the error output.
func TestTailErrors(t *testing.T) {
	t.Parallel()
	g := start(
		t,
		shape{cpus: []int32{1}, script: "#!/bin/sh\necho 123456789 >&2\nwhile [ ! -e go ]; do sleep 0.05; done\n",
			job: func(j *job.Job) { j.Batch.Error = "err.txt" }},
	)
	waitFor(t, filepath.Join(g.dir, "err.txt"), "9")
	text, _ := tail(t, g, step.Tail{Errors: true, Most: 4}, func(text string) {
		if strings.HasSuffix(text, "9\n") {
			_ = os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600) // otherwise the test's deadline fails it
		}
	})
	if text != "[err.txt 6]789\n" {
		t.Errorf("%q", text)
	}
}

// TestTailUnreadable checks the messages about output that cannot be read.
func TestTailUnreadable(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\ntouch up\nwhile [ ! -e go ]; do sleep 0.05; done\n",
		job: func(j *job.Job) { j.Batch.Output = "/dev/null" }})
	waitFor(t, filepath.Join(g.dir, "up"), "")
	if _, why := tail(t, g, step.Tail{}, nil); !strings.Contains(why, "/dev/null is not a regular file") {
		t.Errorf("refused with %q", why)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGPULoad checks that the agent measures GPUs with nvidia-smi, and reports only those
// of the job.
func TestGPULoad(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\necho '0, GPU-a, NVIDIA A100-SXM4-80GB, 3, 100, 81920'\necho '1, GPU-b, NVIDIA A100-SXM4-80GB, 97, 40000, 81920'\n" +
		"echo '2, GPU-c, NVIDIA A100-SXM4-80GB, [N/A], [N/A], 81920'\n"
	exectest.Write(t, filepath.Join(bin, "nvidia-smi"), script)
	g := start(t, shape{cpus: []int32{1}, script: "#!/bin/sh\ntouch up\nwhile [ ! -e go ]; do sleep 0.05; done\n",
		with: func(g *gang) {
			g.image = []string{"PATH=" + bin + ":/usr/bin:/bin"}
			g.base.Hosts[0].GRES = []wire.HostGRES{{Name: "gpu", Count: 2, Indexes: "1-2"}}
		}})
	waitFor(t, filepath.Join(g.dir, "up"), "")
	query := func(gpus bool) (out []step.GPU) {
		conn, err := step.Dial(t.Context(), socketOf(t, g))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SendJSON(step.FrameQuery, &step.Query{GPUs: gpus}); err != nil {
			t.Fatal(err)
		}
		err = step.Follow(conn, nil, func(f *step.Frame) error {
			var u step.Usage
			if err := f.Decode(&u); err != nil {
				return err
			}
			out = append(out, u.GPUs...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var got []step.GPU
	eventually.Holds(t, "the agent, which registers the script after it has started it, reports GPUs", func() bool {
		got = query(true)
		return len(got) > 0
	})
	if len(got) != 2 ||
		got[0] != (step.GPU{Node: "n1", Index: 1, UUID: "GPU-b", Name: "NVIDIA A100-SXM4-80GB", Busy: 97, Memory: 40000 << 20, Total: 81920 << 20}) ||
		got[1].Busy != -1 ||
		got[1].Memory != -1 {
		t.Errorf("%+v", got)
	}
	if got := query(false); len(got) != 0 {
		t.Errorf("GPUs that were not requested: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a file exists and contains a text.
func waitFor(t *testing.T, path, text string) {
	t.Helper()
	eventually.Succeeds(t, "contents of "+path, func() error {
		b, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(b), text) {
			err = fmt.Errorf("no %q in %q", text, b)
		}
		return err
	})
}
