package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parts names the parts of the cluster's process, and what the functions of each have in their
// names. A sample of a profile counts for the part of its innermost function that has one, so
// that the language's libraries count for their callers. Garbage collection and waiting for work
// are looked for first, in all functions of a sample.
var parts = []struct {
	name   string
	frames []string
}{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep",
		"runtime.bgscavenge", "runtime.gcStart", "runtime.gcMarkTermination"}},
	{"waiting for work", []string{"runtime.findRunnable", "runtime.schedule", "runtime.mcall", "runtime.sysmon"}},
	{"store (etcd)", []string{"go.etcd.io/"}},
	{"admission and submission", []string{"berth/internal/queue/admission", "berth/internal/queue/submit"}},
	{"planner", []string{"berth/internal/sched/backfill", "berth/internal/sched/planner",
		"berth/internal/sched/snapshot", "berth/internal/sched/priority"}},
	{"scheduler, without the planner", []string{"berth/internal/sched", "k8s.io/kubernetes/pkg/scheduler"}},
	{"accounting", []string{"berth/internal/acct", "modernc.org/sqlite"}},
	{"queue service", []string{"berth/internal/queue", "berth/internal/agentapi"}},
	{"nodes", []string{"berth/internal/processnode"}},
	{"JobSets and Jobs", []string{"sigs.k8s.io/jobset", "k8s.io/kubernetes/pkg/controller",
		"sigs.k8s.io/controller-runtime"}},
	{"API server", []string{"k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator",
		"k8s.io/kubernetes"}},
	{"clients and caches", []string{"k8s.io/client-go"}},
	{"HTTP and TLS", []string{"net/http", "crypto/", "golang.org/x/net"}},
}

const otherPart = "other"

// partOf returns the part to which a stack belongs; its innermost frame is the first.
func partOf(stack []string) string {
	for _, p := range parts[:2] {
		for _, f := range stack {
			if containsAny(f, p.frames) {
				return p.name
			}
		}
	}
	for _, f := range stack {
		for _, p := range parts[2:] {
			if containsAny(f, p.frames) {
				return p.name
			}
		}
	}
	return otherPart
}

func containsAny(s string, subs []string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

// stacks parses what "go tool pprof -traces" prints: blocks that a line of dashes precedes,
// of a value and a frame, and further frames outwards.
func stacks(text []byte, each func(seconds float64, stack []string)) error {
	var (
		stack []string
		value float64
	)
	flush := func() {
		if len(stack) > 0 {
			each(value, stack)
		}
		stack = nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	began := false
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----------+") {
			flush()
			began = true
			continue
		}
		fields := strings.Fields(line)
		if !began || len(fields) == 0 {
			continue
		}
		if len(stack) == 0 {
			var err error
			if value, err = strconv.ParseFloat(strings.TrimSuffix(fields[0], "ms"), 64); err != nil {
				return fmt.Errorf("pprof printed %q", line)
			}
			fields = fields[1:]
		}
		stack = append(stack, strings.Join(fields, " "))
	}
	flush()
	return lines.Err()
}

// window is the length of one profile, in seconds.
const window = 3

// profile begins to profile the cluster's process. The function that it returns ends that,
// and returns each part's share of the processor time.
func (b *profileBench) profile(ctx context.Context, activity string) func() (map[string]float64, error) {
	ctx, stop := context.WithCancel(ctx)
	shares, done := map[string]float64{}, make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			err := b.window(ctx, fmt.Sprintf("%s-%d.pprof", strings.ReplaceAll(activity, " ", "-"), i), shares)
			if err != nil || ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	return func() (map[string]float64, error) {
		stop()
		err := <-done
		sum := 0.0
		for _, v := range shares {
			sum += v
		}
		for k := range shares {
			shares[k] /= sum
		}
		return shares, errors.Join(err, errUnless(sum > 0, "the profiles have no samples"))
	}
}

// window takes one profile and adds what it has to each part's share.
func (b *profileBench) window(ctx context.Context, name string, shares map[string]float64) error {
	data, err := b.api.get(context.WithoutCancel(ctx), "/debug/pprof/profile?seconds="+strconv.Itoa(window))
	if err != nil {
		return err
	}
	file := filepath.Join(cmp.Or(b.keep, b.dir), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "go", "tool", "pprof", "-traces", "-unit=ms", file)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	return stacks(text, func(ms float64, stack []string) { shares[partOf(stack)] += ms })
}

// requests returns how many requests the API server has answered, by kind, such as
// "POST pods/binding". Watches are not counted.
func (c *apiClient) requests(ctx context.Context) (map[string]float64, error) {
	text, err := c.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		labels, isRequest := strings.CutPrefix(line, "apiserver_request_total{")
		if !isRequest || label(labels, "verb") == "WATCH" {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			return nil, fmt.Errorf("apiserver_request_total: %w", err)
		}
		kind := label(labels, "verb") + " " + label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			kind += "/" + sub
		}
		all[kind] += n
	}
	return all, nil
}

// label returns the value of a metric's label.
func label(labels, name string) string {
	_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// treeTime is the processor time of all processes that a process has started, and that they
// have, whether they still run or not.
func treeTime(root int) time.Duration {
	parent, used := map[int]int{}, map[int]int64{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		parent[pid], _ = strconv.Atoi(f[1])
		fields := f[11:15] // utime, stime, cutime, cstime: proc(5)
		if pid == root {
			fields = f[13:15]
		}
		for _, field := range fields {
			n, _ := strconv.ParseInt(field, 10, 64)
			used[pid] += n
		}
	}
	ticks := int64(0)
	for pid, n := range used {
		for p := pid; p > 1; p = parent[p] {
			if p == root {
				ticks += n
				break
			}
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// profileTable has a column for each activity.
type profileTable struct {
	activities []activity
	costs      []cost
}

func (t *profileTable) add(a activity, c cost) {
	t.activities, t.costs = append(t.activities, a), append(t.costs, c)
}

func (t *profileTable) markdown() string {
	var b strings.Builder
	line := func(name string, cell func(c cost) string) {
		b.WriteString("| " + name + " |")
		for _, c := range t.costs {
			b.WriteString(" " + cell(c) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("| processor time of one, in ms |")
	for _, a := range t.activities {
		b.WriteString(" " + a.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.costs)) + "\n")
	ms := func(d float64) string {
		if d < 0.005 {
			return "–"
		}
		return fmt.Sprintf("%.2f", d)
	}
	line("the commands", func(c cost) string { return ms(c.commands.Seconds() * 1e3) })
	line("agents, scripts and tasks", func(c cost) string { return ms(c.jobs.Seconds() * 1e3) })
	line("the cluster's process", func(c cost) string { return ms(c.cluster.Seconds() * 1e3) })
	names := []string{otherPart}
	for i := range parts {
		names = append(names, parts[len(parts)-1-i].name)
	}
	for i := range names {
		name := names[len(names)-1-i]
		line("– "+name, func(c cost) string { return ms(c.parts[name] * c.cluster.Seconds() * 1e3) })
	}
	line("requests to the API server", func(c cost) string {
		sum := 0.0
		for _, n := range c.requests {
			sum += n
		}
		return fmt.Sprintf("%.1f", sum)
	})
	for i, c := range t.costs {
		if c.jobs > 0 {
			fmt.Fprintf(&b, "\nThe requests of %s: %s.\n", t.activities[i].name, kinds(c.requests))
		}
	}
	return b.String()
}

// kinds lists the requests that are made at least for every tenth of an activity, the most
// frequent first.
func kinds(requests map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(requests[b], requests[a]), cmp.Compare(a, b))
	})
	var list []string
	for _, name := range names {
		if requests[name] >= 0.1 {
			list = append(list, fmt.Sprintf("%.1f `%s`", requests[name], name))
		}
	}
	return strings.Join(list, ", ")
}
