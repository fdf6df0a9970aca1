package tui

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

const many = 100_000

// longQueue is a SYNC of many jobs, in parts as the queue API sends them.
func longQueue() []*status.JobEvent {
	const part = 2000
	var out []*status.JobEvent
	for first := 0; first < many; first += part {
		e := &status.JobEvent{Type: status.EventMore, Time: now}
		if first == 0 {
			e.Type = status.EventSync
		}
		if first+part >= many {
			e.Revision = "r"
		}
		for i := first; i < first+part; i++ {
			e.Items = append(e.Items, longJob(int64(i+1)))
		}
		out = append(out, e)
	}
	return out
}

func longJob(id int64) status.Job {
	j := status.Job{ID: id, Name: fmt.Sprint("job-", id), User: fmt.Sprint("user", id%200), Partition: fmt.Sprint("p", id%4), State: "PENDING", Reason: "Priority",
		Priority: 1_000_000 - id, Submit: now - id, Start: now + id, TimeLimit: 60, Nodes: 1, CPUs: 4, Tasks: 4, TRES: "cpu=4,mem=8G,node=1,billing=4"}
	if id%50 == 0 {
		j.State, j.Reason, j.NodeList, j.Start = "RUNNING", "None", fmt.Sprint("n", id/50), now-60
	}
	return j
}

// full is a model of 200x60 cells over a long queue; events are what a watch
// has sent.
func full(b testing.TB, events []*status.JobEvent) (*Model, *data.Watch) {
	m, err := New(context.Background(), process(nil, nil), newCluster(), jobs.Screen{})
	if err != nil {
		b.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	m.queue.Start()
	w := m.queue.Watch()
	w.Stop()
	for chunk := range slices.Chunk(events, 64) {
		m.Update(data.Events{Watch: w, Events: chunk})
	}
	return m, w
}

// processor is the processor time that the process has used: on a machine that
// is busy with other things the time that passes says little.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// spend reports the processor time of an operation, once it is called.
func spend(b *testing.B) func() {
	began := processor()
	return func() { b.ReportMetric(float64((processor()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

func press(m *Model, k tea.KeyPressMsg) { m.Update(k); m.render() }

// BenchmarkFirstPaint is from the decoded rows to the first frame.
func BenchmarkFirstPaint(b *testing.B) {
	events := longQueue()
	defer spend(b)()
	for b.Loop() {
		m, _ := full(b, events)
		m.render()
	}
}

// BenchmarkKey is a key that moves the cursor, and the frame.
func BenchmarkKey(b *testing.B) {
	m, _ := full(b, longQueue())
	down, up := keyCalled("pgdown"), keyCalled("pgup")
	var times []time.Duration
	defer spend(b)()
	for b.Loop() {
		k := down
		if len(times)%1000 > 500 {
			k = up
		}
		began := time.Now()
		press(m, k)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkFilter is a letter more in a filter, and the frame.
func BenchmarkFilter(b *testing.B) {
	for _, text := range []string{"user:user17 st:PD", "job-99", "gpu>=0", "/^job-[0-9]+7$/"} {
		b.Run(text, func(b *testing.B) {
			m, _ := full(b, longQueue())
			defer spend(b)()
			for b.Loop() {
				if err := m.queue.SetFilter(text); err != nil {
					b.Fatal(err)
				}
				m.render()
			}
		})
	}
}

// BenchmarkRefresh is an event with one changed row, and the frame.
func BenchmarkRefresh(b *testing.B) {
	m, w := full(b, longQueue())
	n := int64(0)
	defer spend(b)()
	for b.Loop() {
		n++
		j := longJob(n%many + 1)
		j.Reason = fmt.Sprint("Reason", n%7)
		m.Update(data.Events{Watch: w, Events: []*status.JobEvent{{Type: status.EventDiff, Revision: "r", Time: now, Items: []status.Job{j}}}})
		m.render()
	}
}

// BenchmarkSort orders by another column.
func BenchmarkSort(b *testing.B) {
	m, _ := full(b, longQueue())
	defer spend(b)()
	for b.Loop() {
		m.Update(ui.Notice{})
		press(m, tea.KeyPressMsg{Code: 's', Text: "s"})
	}
}

// TestMemory: a queue of 100,000 jobs stays far below what whole rows take.
func TestMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	m, w := full(t, longQueue())
	used := (heap() - before) >> 20
	t.Logf("%d MiB for %d jobs", used, many)
	if used > 60 {
		t.Errorf("%d MiB for %d jobs", used, many)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(w)
}
