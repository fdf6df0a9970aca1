package squeue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// unsortable are the letters that -S does not accept.
const unsortable = "abkoqrswxyAEFKRWXYZ"

// badOrder returns the invalid letters of an order that Slurm reports: it parses the order
// from its end, and stops at the first one that is not a b.
func badOrder(order string, columns func(byte) bool) (bad []byte) {
	for i := len(order) - 1; i >= 0; i-- {
		switch c := order[i]; c {
		case '-', '+', ',', '#', ' ':
		default:
			if columns(c) {
				continue
			}
			if bad = append(bad, c); c != 'b' {
				return bad
			}
		}
	}
	return bad
}

func jobLetter(c byte) bool {
	return strings.IndexByte(unsortable, c) < 0 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}

// head returns the lines before a list that was read at the given time: the time, the
// number of records, the cluster, the headers. As in Slurm, an invalid order is an error at
// this point.
func (o *Options) head(now time.Time, header func([]byte) []byte, bad []byte, read int64, records int) ([]byte, error) {
	var out []byte
	if (o.long || o.verbose || o.every > 0) && !o.noHeader {
		out = now.In(o.settings.Location).AppendFormat(out, "Mon Jan _2 15:04:05 2006\n")
	}
	if o.verbose {
		out = fmt.Appendf(out, "last_update_time=%d records=%d\n", read, records)
	}
	if len(o.clusters) > 0 && !o.noHeader {
		out = append(out, "CLUSTER: "+o.settings.Cluster+"\n"...)
	}
	if !o.noHeader {
		out = header(out)
	}
	for _, c := range bad {
		if c == 'b' { // as in Slurm, the message alone
			fmt.Fprintln(o.p.Err, "squeue: Invalid sort specification: b")
			continue
		}
		if _, err := o.p.Out.Write(out); err != nil {
			return nil, err
		}
		return nil, slurmerr.Newf(slurmerr.Refused, "Invalid sort specification: %c", c)
	}
	return out, nil
}

// show prints the rows.
func (o *Options) show(got *status.JobList) error {
	fmt.Fprint(o.p.Err, format.InvalidColumns("squeue", o.badColumns))
	o.badColumns = nil
	s := o.settings
	now := o.p.Now()
	s.Now = got.Time
	if s.Now == 0 {
		s.Now = now.Unix()
	}
	rows := format.SplitArrays(got.Items)
	if !o.array && !o.unique {
		rows = format.MergeTasks(rows)
	}
	if o.split {
		rows = format.SplitPartitions(rows)
	}
	out, err := o.head(now, o.layout.AppendHeader, badOrder(o.order, jobLetter), s.Now, len(got.Items))
	if err != nil {
		return err
	}
	for _, row := range format.SortJobsAt(rows, o.order, &s) {
		if !o.array {
			out = o.layout.AppendRow(out, row, &s)
			continue
		}
		tasks := o.filter.tasks(format.ExpandArrays([]status.Job{*row}))
		for i := range tasks {
			out = o.layout.AppendRow(out, &tasks[i], &s)
		}
	}
	if _, err := o.p.Out.Write(out); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// follow prints the list repeatedly from a watch, so that the server sends only
// changes.
func follow(ctx context.Context, o *Options, queue Lister) error {
	if err := o.checkUsers(ctx, queue); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, failed := make(chan *status.JobEvent), make(chan error, 1)
	go func() {
		failed <- queue.Watch(ctx, o.request(), func(e *status.JobEvent) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(err error) { slurmerr.Print(o.p.Err, "squeue", err) })
	}()
	return o.repeat(ctx, events, failed)
}

// repeat prints the list when it is complete, and then at every interval.
func (o *Options) repeat(ctx context.Context, events <-chan *status.JobEvent, failed <-chan error) error {
	var mirror jobs.Mirror
	var tick <-chan time.Time
	for {
		select {
		case e := <-events:
			if mirror.Apply(e); tick != nil || e.Revision == "" {
				continue
			}
			ticker := time.NewTicker(o.every)
			defer ticker.Stop() //nolint:revive // runs once, as tick is set then
			tick = ticker.C
		case <-tick:
			if err := o.p.Print("\n"); err != nil {
				return err
			}
		case err := <-failed:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		now := mirror.Time
		if at := o.p.Now().Unix(); at > now {
			now = at
		}
		if err := o.show(&status.JobList{Time: now, Items: o.filter.keep(mirror.List())}); err != nil {
			return err
		}
	}
}
