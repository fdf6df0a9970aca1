package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// attempts bounds how often a change is worked out anew because somebody else
// wrote the job meanwhile.
const attempts = 4

// again carries out once, with the job as it is then, until nobody else writes
// it in between.
func (o *Operations) again(ctx context.Context, row *table.Row, once func() error) error {
	var err error
	for range attempts {
		if err = once(); !errors.Is(err, errNotNow) {
			return err
		}
		live := &v1alpha1.BatchJob{}
		if err := o.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: row.Namespace, Name: row.Object}, live); err != nil {
			return err
		}
		o.Cluster.ApplyJob(live)
	}
	return err
}

// update makes the settings of scontrol update in one job: all or none.
func (o *Operations) update(ctx context.Context, c *directory.Caller, row *table.Row, set map[string]string) error {
	return o.again(ctx, row, func() error {
		b, err := o.job(c, row, status.OpUpdate)
		if err != nil {
			return err
		}
		n, warned := change.Job(b, set, o.world(c, b, row))
		if n == nil {
			return warned
		}
		spec, err := difference(&b.Spec, &n.Spec)
		if err != nil {
			return err
		}
		if len(spec) > 0 {
			err = o.patch(ctx, b, map[string]any{"metadata": map[string]any{"resourceVersion": b.ResourceVersion}, "spec": spec})
		}
		return errors.Join(err, warned)
	})
}

// world is what a change of b is judged by.
func (o *Operations) world(c *directory.Caller, b *v1alpha1.BatchJob, row *table.Row) *change.World {
	var nodes map[string]bool
	return &change.World{
		Now: o.Now(), Operator: c.Operator,
		Priority: o.Table.Merged(row).Priority, Limit: table.TimeLimit(b, o.Directory.Partition(partitionOf(b))),
		Partition: o.Directory.Partition,
		Account: func(name string) bool {
			a, known := o.Directory.Account(name)
			return a != nil || !known
		},
		QOS: func(name string) bool {
			q, known := o.Directory.QOS(name)
			return q != nil || !known
		},
		Node: func(name string) bool {
			if nodes == nil {
				nodes = map[string]bool{}
				for _, n := range o.Pool.NodesView() {
					nodes[n.Name] = true
				}
			}
			return nodes[name]
		},
		Reservation: func(name string) bool { return o.Directory.Reservation(name) != nil },
		License:     func(name string) bool { return o.Directory.Parameters().Licenses[name] > 0 },
		Job: func(id int64) *v1alpha1.BatchJob {
			other, _ := o.Cluster.Job(id)
			return other
		},
		Within: func(old, now *v1alpha1.BatchJob) error {
			if o.Within == nil {
				return nil
			}
			return o.Within(old, now, c)
		},
		Check: func(b *v1alpha1.BatchJob) error { return o.judge(b, c.Operator) },
	}
}

// judge checks a changed job as a submission; what is too large for the
// partition has another name here than there.
func (o *Operations) judge(b *v1alpha1.BatchJob, operator bool) error {
	if o.Judge == nil {
		return nil
	}
	if b.Spec.Job.Hold != "" { // of whatever kind, it is of no matter here
		free := *b
		free.Spec.Job.Hold = ""
		b = &free
	}
	err := o.Judge(b, operator)
	if err != nil && (err.Error() == textNodeCount || err.Error() == textProcessors) {
		return errPartConfig
	}
	return err
}

const (
	textNodeCount          = "Node count specification invalid"
	textProcessors         = "More processors requested than permitted"
	errPartConfig  Refused = "Requested partition configuration not available now"
)

func partitionOf(b *v1alpha1.BatchJob) string {
	if b.Status.Partition != "" && !pending(b) {
		return b.Status.Partition
	}
	return b.Spec.Partition
}

// difference is the merge patch (RFC 7386) from one spec to the other.
func difference(from, to *v1alpha1.BatchJobSpec) (map[string]any, error) {
	var a, b map[string]any
	for _, x := range []struct {
		spec *v1alpha1.BatchJobSpec
		into *map[string]any
	}{{from, &a}, {to, &b}} {
		raw, err := json.Marshal(x.spec)
		if err != nil {
			return nil, fmt.Errorf("encoding the job: %w", err)
		}
		if err := json.Unmarshal(raw, x.into); err != nil {
			return nil, fmt.Errorf("encoding the job: %w", err)
		}
	}
	return mergePatch(a, b), nil
}

func mergePatch(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for k := range from {
		if _, ok := to[k]; !ok {
			out[k] = nil
		}
	}
	for k, v := range to {
		old, had := from[k]
		inner, ok := v.(map[string]any)
		was, both := old.(map[string]any)
		switch {
		case had && ok && both:
			if d := mergePatch(was, inner); len(d) > 0 {
				out[k] = d
			}
		case !had || !equal(old, v):
			out[k] = v
		}
	}
	return out
}

func equal(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && slices.Equal(x, y)
}

// suspend stops a job that runs.
func (o *Operations) suspend(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return o.setSuspend(ctx, c, row, true)
}

func (o *Operations) resume(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return o.setSuspend(ctx, c, row, false)
}

func (o *Operations) setSuspend(ctx context.Context, c *directory.Caller, row *table.Row, stop bool) error {
	action := authz.Action(status.OpSuspend)
	if !stop {
		action = status.OpResume
	}
	b, err := o.job(c, row, action)
	switch {
	case err != nil:
		return err
	case pending(b):
		return errPending
	case !live(b):
		return errDone
	case b.Spec.Workload != nil: // nobody in its pods would stop them
		return errNotSupported
	case b.Status.State == v1alpha1.StateConfiguring:
		return errNotNow
	case !stop && !b.Spec.Suspend:
		return errNotSuspended
	case stop == b.Spec.Suspend:
		return nil
	}
	return o.patch(ctx, b, map[string]any{"spec": map[string]any{"suspend": stop}})
}

// requeueHold puts a job back into the queue, held; special: in SPECIAL_EXIT.
func (o *Operations) requeueHold(ctx context.Context, c *directory.Caller, row *table.Row, special bool) error {
	return o.again(ctx, row, func() error {
		b, err := o.begun(ctx, c, row, status.OpRequeueHold)
		if err != nil {
			return err
		}
		spec := requeued(b)
		hold := job.HoldRequeue
		switch {
		case b.Spec.Job.Hold == "admin" && !o.mayFree(c, b):
			hold = "admin" // the owner could release any other
		case special:
			hold = job.HoldSpecial
		}
		spec["job"] = map[string]any{"hold": hold}
		return o.patch(ctx, b, map[string]any{"metadata": map[string]any{"resourceVersion": b.ResourceVersion}, "spec": spec})
	})
}

// notify writes a line to the standard error of a batch job.
func (o *Operations) notify(c *directory.Caller, row *table.Row, text string) error {
	b, err := o.job(c, row, status.OpNotify)
	switch {
	case err != nil:
		return err
	case b.Spec.Workload != nil:
		return errNotSupported
	case b.Status.State != v1alpha1.StateRunning && b.Status.State != v1alpha1.StateSuspended:
		return errDisabled
	}
	o.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandNotify, Text: oneLine(text)})
	return nil
}

// maxNotice bounds what one notify writes.
const maxNotice = 4096

// oneLine keeps a notice from forging others: control characters become blanks.
func oneLine(text string) string {
	r := []rune(text)
	for i, c := range r {
		if c < ' ' || c == 0x7f {
			r[i] = ' '
		}
	}
	return string(r[:min(len(r), maxNotice)])
}

// top puts a job ahead of the other pending jobs of its user in its partition,
// whose nice values pay for it.
func (o *Operations) top(ctx context.Context, c *directory.Caller, row *table.Row) error {
	b, err := o.job(c, row, status.OpTop)
	switch {
	case err != nil:
		return err
	case !pending(b):
		return errNotPending
	case b.Spec.Job.Hold != "":
		return refusal.JobHeld
	}
	mine := o.Table.Merged(row).Priority
	best := mine
	var others []*v1alpha1.BatchJob
	for _, r := range o.Table.Select(ctx, table.Query{Users: []string{b.Spec.User}, States: []string{v1alpha1.StatePending}}) {
		other, ok := o.Cluster.Job(r.ID)
		if !ok || r.ID == row.ID || other.Spec.Job.Hold != "" || other.Spec.Partition != b.Spec.Partition {
			continue
		}
		others = append(others, other)
		best = max(best, o.Table.Merged(r).Priority)
	}
	if best == mine {
		return nil
	}
	gain := best - mine
	if err := o.setNice(ctx, b, int64(b.Spec.Job.Nice)-gain); err != nil {
		return err
	}
	for _, other := range others {
		if err := o.setNice(ctx, other, int64(other.Spec.Job.Nice)+gain/int64(len(others)+1)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operations) setNice(ctx context.Context, b *v1alpha1.BatchJob, nice int64) error {
	const most = 1<<31 - 3
	nice = min(max(nice, -most), most)
	return o.patch(ctx, b, map[string]any{"spec": map[string]any{"job": map[string]any{"nice": int32(nice)}}})
}
