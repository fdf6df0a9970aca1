package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/faults"
	"github.com/berth-hpc/berth/test/chaos/history"
	"github.com/berth-hpc/berth/test/chaos/load"
)

// Deadlines after the end of the load. They are far beyond what a busy machine needs.
const (
	drainTime = 4 * time.Minute  // for all jobs to end, from when one ended last
	tidyTime  = 90 * time.Second // for what belonged to them to go
)

// run runs the load with the faults on a new cluster and returns the history.
func (o *options) run(ctx context.Context, plan []faults.Fault, log io.Writer) (h *history.History, err error) {
	dir, err := os.MkdirTemp("", "berth-chaos-")
	if err != nil {
		return nil, err
	}
	log = &lines{to: log}
	c, err := cluster.Start(ctx, cluster.Options{Bin: o.bin, Previous: o.previous, Dir: dir, Nodes: o.nodes,
		Users: o.users, Standby: o.standby, Reader: o.reader || o.seed%3 == 1, Lease: o.lease,
		Postgres:    (o.postgres || o.seed%2 == 0) && cluster.HasPostgres(),
		EtcdMembers: o.etcdMembers(), Disk: o.disk || o.seed%4 == 3,
		Login: o.login || o.seed%4 == 1, Simulated: o.simulated, Log: log})
	defer func() {
		left := c.Stop()
		if h != nil {
			h.Left = append(h.Left, left...)
			err = errors.Join(err, writeHistory(filepath.Join(dir, "history.json"), h))
		}
		if !o.keep && err == nil && len(history.Check(h)) == 0 {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(log, "the history and the logs are in", dir)
		}
	}()
	if err != nil {
		return nil, err
	}
	l := &load.Load{Cluster: c, Pause: o.think, Quick: o.duration < 2*time.Minute}
	if err := l.Prepare(); err != nil {
		return nil, err
	}
	return o.observe(ctx, c, l, plan, log)
}

// etcdMembers returns the number of members of etcd: that of the flag, or by the seed.
func (o *options) etcdMembers() int {
	switch {
	case o.etcd >= 0:
		return o.etcd
	case o.seed%5 == 2:
		return 3
	}
	return 0
}

// alteredShare is the share of the answers that are altered throughout, in half of the seeds.
const alteredShare = 0.05

// altered returns the share of altered answers: that of the flag, or by the seed.
func (o *options) altered() float64 {
	switch {
	case o.alter >= 0:
		return o.alter
	case o.seed/2%2 == 0:
		return alteredShare
	}
	return 0
}

// observe runs load and faults on a cluster that is up, and collects the history.
func (o *options) observe(ctx context.Context, c *cluster.Cluster, l *load.Load, plan []faults.Fault,
	log io.Writer) (*history.History, error) {
	before, err := c.Goroutines(ctx)
	if err != nil {
		return nil, err
	}
	watching, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	watcher := c.Watch(watching)
	loading, stopLoad := context.WithTimeout(ctx, o.duration)
	defer stopLoad()
	var injected []history.Fault
	stopAltering := faults.Alter(c, o.seed, o.altered())
	var failure error
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(loading, o.seed) })
	wg.Go(func() {
		failure = faults.Run(loading, c, plan, func(f history.Fault) {
			fmt.Fprintf(log, "%s %-14s %s, whole after %v\n", f.Begin.Format("15:04:05.000"), f.Kind, f.Target,
				f.End.Sub(f.Begin).Round(time.Millisecond))
			injected = append(injected, f)
		})
		if failure != nil {
			fmt.Fprintln(log, "no more faults, because the cluster was not whole again:", failure)
		}
	})
	wg.Wait()
	stopAltering()
	queue := drain(ctx, c, l)
	h := l.History()
	h.Faults, h.Queue, h.Injected = injected, queue, c.Injected()
	h.Nodes, h.Licenses = c.Shape(), map[string]int64{cluster.License: cluster.Licenses}
	if failure != nil {
		h.Left = append(h.Left, "the cluster was not whole again: "+failure.Error())
	}
	collect(ctx, c, &h)
	stopWatch()
	h.Placements = watcher.Placements()
	h.Left = append(h.Left, tidy(ctx, c, before, controlPlaneKilled(injected))...)
	return &h, ctx.Err()
}

// drain waits until the queue is empty, helps jobs that wait for a user, and returns what
// is in the queue at the end.
func drain(ctx context.Context, c *cluster.Cluster, l *load.Load) []history.Row {
	least := math.MaxInt
	for deadline := time.Now().Add(drainTime); ; time.Sleep(500 * time.Millisecond) {
		rows, err := c.Queue(ctx)
		if err == nil && len(rows) == 0 || ctx.Err() != nil {
			return nil
		}
		if err == nil && len(rows) < least {
			least, deadline = len(rows), time.Now().Add(drainTime)
		}
		for _, r := range rows {
			verb, args := "", []string(nil)
			id := strconv.FormatInt(r.ID, 10)
			switch {
			case strings.HasPrefix(r.Reason, "JobHeld"):
				verb, args = "release", []string{"scontrol", "release", id}
			case r.Reason == "DependencyNeverSatisfied":
				verb, args = "cancel", []string{"scancel", id}
			case r.State == "SUSPENDED":
				verb, args = "resume", []string{"scontrol", "resume", id}
			default:
				continue
			}
			l.Operate(ctx, c.Operator, verb, r.ID, args...)
		}
		if time.Now().After(deadline) {
			if err != nil {
				return []history.Row{{Name: "squeue", State: "unknown", Reason: err.Error()}}
			}
			return rows
		}
	}
}

// collect reads accounting, which may lag behind, and what the jobs wrote.
func collect(ctx context.Context, c *cluster.Cluster, h *history.History) {
	var ids []int64
	for i := range h.Submissions {
		if id := h.Submissions[i].ID; id != 0 {
			ids = append(ids, id)
		}
	}
	for deadline := time.Now().Add(tidyTime); ; time.Sleep(500 * time.Millisecond) {
		records, err := c.Records(ctx, ids)
		if err == nil {
			h.Records = records
			late := false
			for _, r := range records {
				late = late || !history.IsFinal(r.State)
			}
			if !late {
				break
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			if err != nil {
				h.Left = append(h.Left, "accounting does not answer: "+err.Error())
			}
			break
		}
	}
	marks, err := c.Marks()
	if err != nil {
		h.Left = append(h.Left, "a line of a job that cannot be read: "+err.Error())
	}
	h.Marks = marks
}

// tidy returns the objects, processes and goroutines that stay.
func tidy(ctx context.Context, c *cluster.Cluster, goroutines int, replaced bool) []string {
	for deadline := time.Now().Add(tidyTime); ; time.Sleep(time.Second) {
		left, err := c.Objects(ctx)
		if err != nil {
			left = append(left, err.Error())
		}
		for _, pid := range c.Agents() {
			left = append(left, fmt.Sprint("agent ", pid))
		}
		now, err := c.Goroutines(ctx)
		if limit := goroutines + max(100, goroutines/10); err == nil && now > limit && !replaced {
			left = append(left, fmt.Sprintf("%d goroutines of the control plane, %d before the load", now, goroutines))
		}
		if len(left) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return left
		}
	}
}

// controlPlaneKilled reports whether the process whose goroutines were counted is gone.
func controlPlaneKilled(list []history.Fault) bool {
	for _, f := range list {
		if f.Kind == "control-plane" || f.Kind == "disk-full" || f.Kind == "disk-read-only" {
			return true
		}
	}
	return false
}

func writeHistory(path string, h *history.History) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func readHistory(path string) (*history.History, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := &history.History{}
	return h, json.Unmarshal(data, h)
}

// report writes what was done and which promises were broken; then the error says so.
func report(out io.Writer, h *history.History) error {
	accepted := 0
	for i := range h.Submissions {
		if h.Submissions[i].ID != 0 {
			accepted++
		}
	}
	fmt.Fprintf(out, "%d submissions, %d accepted, %d operations, %d records, %d lines of jobs, %d placements\n",
		len(h.Submissions), accepted, len(h.Operations), len(h.Records), len(h.Marks), len(h.Placements))
	states := map[string]int{}
	for _, r := range h.Records {
		state, _, _ := strings.Cut(r.State, " ")
		states[state]++
	}
	fmt.Fprintln(out, "states:", states)
	recoveries(out, h)
	counts(out, h)
	broken := history.Check(h)
	for _, v := range broken {
		fmt.Fprintf(out, "BROKEN: %s: %s\n", v.Promise, v.Text)
	}
	if accepted == 0 {
		return errors.New("no submission was accepted: nothing was tested")
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d violations", len(broken))
	}
	fmt.Fprintln(out, "every promise was kept")
	return nil
}

// lines serializes writes.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// recoveries writes, for each kind of fault, how many there were and how long it took until
// the cluster was whole and until the next job started.
func recoveries(out io.Writer, h *history.History) {
	for _, k := range faults.Kinds {
		var whole, placed, started []time.Duration
		for _, f := range h.Faults {
			if f.Kind != k.Name {
				continue
			}
			whole = append(whole, f.End.Sub(f.Begin))
			if p, s, ok := history.NextStart(h, f.Begin); ok {
				placed, started = append(placed, p), append(started, s)
			}
		}
		if len(whole) > 0 {
			fmt.Fprintf(out, "%-14s %4d times; whole again after %v; next placement after %v, next start after %v\n",
				k.Name, len(whole), summary(whole), summary(placed), summary(started))
		}
	}
}

// counts writes how many faults of each class and kind were injected.
func counts(out io.Writer, h *history.History) {
	all := 0
	for _, class := range slices.Sorted(maps.Keys(h.Injected)) {
		kinds, sum := h.Injected[class], 0
		texts := make([]string, 0, len(kinds))
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			texts = append(texts, fmt.Sprintf("%s %d", k, kinds[k]))
			sum += kinds[k]
		}
		fmt.Fprintf(out, "%d %s: %s\n", sum, class, strings.Join(texts, "; "))
		all += sum
	}
	fmt.Fprintln(out, all, "faults were injected")
}

// summary formats the median and the maximum.
func summary(list []time.Duration) string {
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	return fmt.Sprintf("%v (at most %v)", list[len(list)/2].Round(10*time.Millisecond),
		list[len(list)-1].Round(10*time.Millisecond))
}
