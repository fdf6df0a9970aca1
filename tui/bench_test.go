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

// longQueue returns the events of a list of many jobs, in parts as the queue API
// sends them.
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
	j := status.Job{
		ID:        id,
		Name:      fmt.Sprint("job-", id),
		User:      fmt.Sprint("user", id%200),
		Partition: fmt.Sprint("p", id%4),
		State:     "PENDING",
		Reason:    "Priority",
		Priority:  1_000_000 - id,
		Submit:    now - id,
		Start:     now + id,
		TimeLimit: 60,
		Nodes:     1,
		CPUs:      4,
		Tasks:     4,
		TRES:      "cpu=4,mem=8G,node=1,billing=4",
	}
	if id%50 == 0 {
		j.State, j.Reason, j.NodeList, j.Start = "RUNNING", "None", fmt.Sprint("n", id/50), now-60
	}
	return j
}

// newFullModel returns a model of 200x60 cells to which the events of its watch were
// applied.
func newFullModel(b testing.TB, events []*status.JobEvent) (*Model, *data.Watch) {
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

// cpuTime returns the CPU time that the process has used, which depends less on the
// load of the machine than wall-clock time does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureCPU returns a function that reports the CPU time of an operation.
func measureCPU(b *testing.B) func() {
	start := cpuTime()
	return func() { b.ReportMetric(float64((cpuTime()-start).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

func press(m *Model, k tea.KeyPressMsg) { m.Update(k); m.render() }

// BenchmarkFirstPaint measures the time from the decoded rows to the first frame.
func BenchmarkFirstPaint(b *testing.B) {
	events := longQueue()
	defer measureCPU(b)()
	for b.Loop() {
		m, _ := newFullModel(b, events)
		m.render()
	}
}

// BenchmarkKey measures a key that moves the cursor, and the next frame.
func BenchmarkKey(b *testing.B) {
	m, _ := newFullModel(b, longQueue())
	down, up := keyCalled("pgdown"), keyCalled("pgup")
	var times []time.Duration
	defer measureCPU(b)()
	for b.Loop() {
		k := down
		if len(times)%1000 > 500 {
			k = up
		}
		start := time.Now()
		press(m, k)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkFilter measures a changed filter, and the next frame.
func BenchmarkFilter(b *testing.B) {
	for _, text := range []string{"user:user17 st:PD", "job-99", "gpu>=0", "/^job-[0-9]+7$/"} {
		b.Run(text, func(b *testing.B) {
			m, _ := newFullModel(b, longQueue())
			defer measureCPU(b)()
			for b.Loop() {
				if err := m.queue.SetFilter(text); err != nil {
					b.Fatal(err)
				}
				m.render()
			}
		})
	}
}

// BenchmarkRefresh measures an event with one changed row, and the next frame.
func BenchmarkRefresh(b *testing.B) {
	m, w := newFullModel(b, longQueue())
	n := int64(0)
	defer measureCPU(b)()
	for b.Loop() {
		n++
		j := longJob(n%many + 1)
		j.Reason = fmt.Sprint("Reason", n%7)
		m.Update(
			data.Events{
				Watch:  w,
				Events: []*status.JobEvent{{Type: status.EventDiff, Revision: "r", Time: now, Items: []status.Job{j}}},
			},
		)
		m.render()
	}
}

// BenchmarkSort measures sorting by another column.
func BenchmarkSort(b *testing.B) {
	m, _ := newFullModel(b, longQueue())
	defer measureCPU(b)()
	for b.Loop() {
		m.Update(ui.Notice{})
		press(m, tea.KeyPressMsg{Code: 's', Text: "s"})
	}
}

// A queue of 100,000 jobs takes far less memory than whole rows would.
func TestMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	m, w := newFullModel(t, longQueue())
	used := (heap() - before) >> 20
	t.Logf("%d MiB for %d jobs", used, many)
	if used > 60 {
		t.Errorf("%d MiB for %d jobs", used, many)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(w)
}
