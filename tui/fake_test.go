package tui

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// now is the clock of the tests.
const now = 1795263065

// cluster is a cluster in memory. It responds as the queue API does and sends the changes of Put
// and Drop to its watches.
type cluster struct {
	mu       sync.Mutex
	jobs     map[int64]status.Job
	nodes    []status.Node
	records  []status.Record
	revision int
	changed  chan struct{}
	ops      []status.Operation
	refuse   func(op status.Operation, job string) string
	steps    []status.Step
	pods     map[int64]*status.PodList
	attach   func(id int64) (io.ReadWriteCloser, error) // nil: permission denied
	requests map[string]int                             // their number by kind
	down     error                                      // the error of all requests, or nil
	epoch    int                                        // a change restarts all watches
}

func newCluster(list ...status.Job) *cluster {
	c := &cluster{jobs: map[int64]status.Job{}, changed: make(chan struct{})}
	for _, j := range list {
		c.jobs[j.ID] = j
	}
	return c
}

func (c *cluster) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
	c.revision++
	close(c.changed)
	c.changed = make(chan struct{})
}

// Put adds or changes jobs.
func (c *cluster) Put(list ...status.Job) {
	c.change(func() {
		for _, j := range list {
			c.jobs[j.ID] = j
		}
	})
}

// Drop removes jobs.
func (c *cluster) Drop(ids ...int64) {
	c.change(func() {
		for _, id := range ids {
			delete(c.jobs, id)
		}
	})
}

// Break makes every request fail with err, until Break(nil).
func (c *cluster) Break(err error) { c.change(func() { c.down = err; c.epoch++ }) }

func passes(f *jobs.Filter, j *status.Job) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	if len(f.IDs) > 0 && !slices.Contains(f.IDs, fmt.Sprint(j.ID)) &&
		!slices.Contains(f.IDs, fmt.Sprint(j.ArrayJobID)) {
		return false
	}
	states := len(f.States) == 0 && !status.JobState(j.State).IsFinal() || slices.Contains(f.States, "all") ||
		len(f.States) > 0 && slices.Contains(f.States, j.State)
	return states && has(f.Users, j.User) && has(f.Partitions, j.Partition)
}

func (c *cluster) list(f *jobs.Filter) map[int64]status.Job {
	out := map[int64]status.Job{}
	for id, j := range c.jobs {
		if passes(f, &j) {
			out[id] = j
		}
	}
	return out
}

func items(m map[int64]status.Job) []status.Job {
	var out []status.Job
	for _, j := range m {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b status.Job) int { return int(a.ID - b.ID) })
	return out
}

func (c *cluster) Watch(ctx context.Context, f jobs.Filter, each func(*status.JobEvent) error, lost func(error)) error {
	var sent map[int64]status.Job
	epoch := 0
	for {
		c.mu.Lock()
		var e *status.JobEvent
		down, wait := c.down, c.changed
		switch is := c.list(&f); {
		case down != nil:
		case sent == nil || epoch != c.epoch:
			e = &status.JobEvent{Type: status.EventSync, Items: items(is)}
			sent, epoch = is, c.epoch
		default:
			e = &status.JobEvent{Type: status.EventDiff}
			for _, j := range items(is) {
				if old, ok := sent[j.ID]; !ok || old != j {
					e.Items = append(e.Items, j)
				}
			}
			for id := range sent {
				if _, ok := is[id]; !ok {
					e.Gone = append(e.Gone, id)
				}
			}
			sent = is
			if len(e.Items)+len(e.Gone) == 0 {
				e = nil
			}
		}
		revision := c.revision
		c.mu.Unlock()
		if down != nil && lost != nil {
			lost(down)
		}
		if e != nil {
			e.Revision, e.Time = fmt.Sprint("r", revision), now
			if err := each(e); err == jobs.ErrStopWatch { //nolint:errorlint // as it is
				return nil
			} else if err != nil {
				return err
			}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *cluster) Jobs(_ context.Context, f jobs.Filter) (*status.JobList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &status.JobList{Time: now, Items: items(c.list(&f))}, c.down
}

func (c *cluster) count(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = map[string]int{}
	}
	c.requests[kind]++
}

// WatchNodes sends all nodes, and then the changes of PutNodes.
func (c *cluster) WatchNodes(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error {
	c.count("watch nodes")
	var sent map[string]status.Node
	for {
		c.mu.Lock()
		down, wait := c.down, c.changed
		e := &status.NodeEvent{Type: status.EventDiff, Time: now}
		if sent == nil {
			e.Type = status.EventSync
		}
		is := map[string]status.Node{}
		for _, n := range c.nodes {
			is[n.Name] = n
			if old, ok := sent[n.Name]; !ok || !reflect.DeepEqual(old, n) {
				e.Items = append(e.Items, n)
			}
		}
		for name := range sent {
			if _, ok := is[name]; !ok {
				e.Gone = append(e.Gone, name)
			}
		}
		c.mu.Unlock()
		switch {
		case down != nil:
			lost(down)
		case sent == nil || len(e.Items)+len(e.Gone) > 0:
			sent = is
			if err := each(e); err != nil {
				return err
			}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// PutNodes replaces the nodes.
func (c *cluster) PutNodes(list ...status.Node) { c.change(func() { c.nodes = list }) }

func (c *cluster) Pods(_ context.Context, id int64, _ bool) (*status.PodList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.pods[id]; l != nil {
		return l, c.down
	}
	return nil, fs.ErrPermission
}

func (c *cluster) Nodes(context.Context) (*status.NodeList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &status.NodeList{Items: slices.Clone(c.nodes)}, c.down
}

func (c *cluster) Partitions(context.Context) (*status.PartitionList, error) {
	return &status.PartitionList{Items: []status.Partition{{Name: "main", State: "UP"}}}, nil
}

func (c *cluster) Records(_ context.Context, q *status.RecordQuery) (*status.RecordList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &status.RecordList{Time: now}
	for _, r := range c.records {
		if len(q.Jobs) == 0 || slices.Contains(q.Jobs, fmt.Sprint(r.ID)) {
			l.Items = append(l.Items, r)
		}
	}
	return l, c.down
}

func (c *cluster) Steps(context.Context, jobs.StepFilter) (*status.StepList, error) {
	return &status.StepList{Time: now, Items: c.steps}, nil
}

func (c *cluster) Attach(_ context.Context, id int64) (io.ReadWriteCloser, error) {
	c.count("attach")
	c.mu.Lock()
	attach := c.attach
	c.mu.Unlock()
	if attach == nil {
		return nil, fs.ErrPermission
	}
	return attach(id)
}

func (c *cluster) User() string { return "alice" }

func (c *cluster) Operate(_ context.Context, op status.Operation) (*status.OperationResult, error) {
	r := &status.OperationResult{}
	var gone []int64
	c.mu.Lock()
	c.ops = append(c.ops, op)
	for _, id := range op.Jobs {
		s := status.OperationStatus{Job: id}
		if c.refuse != nil {
			s.Error = c.refuse(op, id)
		}
		for _, j := range c.jobs {
			if s.Error == "" && op.Verb == status.OpCancel &&
				(fmt.Sprint(j.ID) == id || fmt.Sprint(j.ArrayJobID) == id) {
				gone = append(gone, j.ID)
			}
		}
		r.Items = append(r.Items, s)
	}
	c.mu.Unlock()
	c.Drop(gone...)
	return r, nil
}

// operations returns the requested operations.
func (c *cluster) operations() []status.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ops)
}

var _ data.Cluster = (*cluster)(nil)

// process returns a process with these variables and files and a fixed clock.
func process(env map[string]string, files map[string]string) *stdio.Process {
	if env == nil {
		env = map[string]string{"LANG": "C.UTF-8"}
	}
	return &stdio.Process{
		Streams:   stdio.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard},
		LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		Environ:   func() []string { return nil },
		Now:       func() time.Time { return time.Unix(now, 0).UTC() },
		Dir:       func() (string, error) { return "/", nil },
		ReadFile: func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
		Width: func() int { return 80 },
	}
}

// driver runs a model without Bubble Tea. It runs each command in a goroutine, and handles their
// messages while it waits for a condition.
type driver struct {
	t    testing.TB
	m    *Model
	msgs chan tea.Msg
	stop context.CancelFunc
	quit bool
	raw  []string // raw output to the terminal
}

func start(t testing.TB, c *cluster, p *stdio.Process, s jobs.Screen, width, height int) *driver {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	m, err := New(ctx, p, c, s)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, m: m, msgs: make(chan tea.Msg, 1000), stop: cancel}
	d.run(m.Init())
	d.send(tea.WindowSizeMsg{Width: width, Height: height})
	return d
}

func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if msg == nil {
			return
		}
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				d.run(c)
			}
			return
		}
		d.msgs <- msg
	}()
}

func (d *driver) send(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.QuitMsg:
		d.quit = true
	case tea.RawMsg:
		d.raw = append(d.raw, fmt.Sprint(msg.Msg))
	}
	_, cmd := d.m.Update(msg)
	d.run(cmd)
	d.check()
}

// screen returns the text on the screen, without styles.
func (d *driver) screen() string {
	lines, _ := d.m.render()
	for i := range lines {
		lines[i] = strings.TrimRight(strip(lines[i]), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// check fails if a line is wider than the screen or there are too many lines.
func (d *driver) check() {
	d.t.Helper()
	lines, _ := d.m.render()
	if len(lines) > d.m.height {
		d.t.Fatalf("%d lines on a screen of %d", len(lines), d.m.height)
	}
	for _, l := range lines {
		if w := ui.Width(strip(l)); w > d.m.width || strings.Contains(l, "\n") {
			d.t.Fatalf("a line of %d cells on a screen of %d: %q", w, d.m.width, l)
		}
	}
}

// until handles messages until ok returns true.
func (d *driver) until(what string, ok func() bool) {
	d.t.Helper()
	deadline := time.After(eventually.Timeout)
	for !ok() {
		select {
		case msg := <-d.msgs:
			d.send(msg)
		case <-deadline:
			d.t.Fatalf("not within %v: %s; the screen is\n%s", eventually.Timeout, what, d.screen())
		}
	}
}

// see waits until the screen shows text.
func (d *driver) see(text string) {
	d.t.Helper()
	d.until(fmt.Sprintf("%q", text), func() bool { return strings.Contains(d.screen(), text) })
}

// disappears waits until the screen no longer shows text.
func (d *driver) disappears(text string) {
	d.t.Helper()
	d.until("the text disappears: "+text, func() bool { return !strings.Contains(d.screen(), text) })
}

// keys types keys: words of letters, or names such as <enter>.
func (d *driver) keys(text string) {
	d.t.Helper()
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "<"); ok {
			if name, after, ok := strings.Cut(rest, ">"); ok && name != "" {
				d.send(keyCalled(name))
				text = after
				continue
			}
		}
		r := []rune(text)[0]
		d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		text = text[len(string(r)):]
	}
}

func keyCalled(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"enter":     tea.KeyEnter,
		"esc":       tea.KeyEscape,
		"tab":       tea.KeyTab,
		"up":        tea.KeyUp,
		"down":      tea.KeyDown,
		"left":      tea.KeyLeft,
		"right":     tea.KeyRight,
		"pgup":      tea.KeyPgUp,
		"pgdown":    tea.KeyPgDown,
		"home":      tea.KeyHome,
		"end":       tea.KeyEnd,
		"backspace": tea.KeyBackspace,
	}
	if name == "space" {
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	if c, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	code, ok := codes[name]
	if !ok {
		panic("no key " + name)
	}
	return tea.KeyPressMsg{Code: code}
}

// temp returns the path of a new file with this text.
func temp(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slurm-1.out")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func strip(s string) string { return stripANSI(s) }

func pasted(text string) tea.Msg { return tea.PasteMsg{Content: text} }
