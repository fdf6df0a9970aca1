package format

import (
	"fmt"
	"time"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

const starLine = "*******************************************************\n"

// AppendDiag appends the output of sdiag. One planner does the work of both Slurm's
// main scheduler and its backfill scheduler, so both sections show its numbers.
func AppendDiag(b []byte, d *status.Diag, in *time.Location) []byte {
	at := func(unix int64) string {
		return time.Unix(unix, 0).In(in).Format("Mon Jan 02 15:04:05 2006") + fmt.Sprintf(" (%d)", unix)
	}
	b = fmt.Appendf(b, "%ssdiag output at %s\nData since      %s\n%s", starLine, at(d.Time), at(d.Since), starLine)
	b = fmt.Appendf(b, "Server thread count:  %d\nAgent queue size:     %d\nAgent count:          %d\n"+
		"Agent thread count:   %d\nDBD Agent queue size: %d\n\n",
		d.Answering, 0, 0, 0, d.Unstored)
	b = fmt.Appendf(b, "Jobs submitted: %d\nJobs started:   %d\nJobs completed: %d\n"+
		"Jobs canceled:  %d\nJobs failed:    %d\n\n",
		d.Submitted, d.Started, d.Completed, d.Cancelled, d.Failed)
	b = fmt.Appendf(b, "Job states ts:  %s\nJobs pending:   %d\nJobs running:   %d\n",
		at(d.Time), d.Pending, d.Running)
	b = appendCycles(b, d)
	b = appendBackfill(b, &d.Plan, at)
	b = fmt.Appendf(b, "\nLatency for 1000 calls to gettimeofday(): %d microseconds\n", d.Clock)
	b = append(b, "\nRemote Procedure Call statistics by message type\n"...)
	for i := range d.Types {
		b = appendRequests(b, "\t%-40s(%5d) ", &d.Types[i])
	}
	b = append(b, "\nRemote Procedure Call statistics by user\n"...)
	for i := range d.Users {
		b = appendRequests(b, "\t%-16s(%8d) ", &d.Users[i])
	}
	return append(b, "\nPending RPC statistics\n\tNo pending RPCs\n"...)
}

func appendCycles(b []byte, d *status.Diag) []byte {
	p := &d.Plan
	b = append(b, "\nMain schedule statistics (microseconds):\n"...)
	b = fmt.Appendf(b, "\tLast cycle:   %d\n\tMax cycle:    %d\n\tTotal cycles: %d\n", p.Last, p.Max, p.Cycles)
	if p.Cycles > 0 {
		b = fmt.Appendf(b, "\tMean cycle:   %d\n\tMean depth cycle:  %d\n", p.Total/p.Cycles, p.Depth/p.Cycles)
	}
	if minutes := (d.Time - d.Since) / 60; minutes > 0 {
		b = fmt.Appendf(b, "\tCycles per minute: %d\n", p.Cycles/minutes)
	}
	return fmt.Appendf(b, "\tLast queue length: %d\n", p.Queue)
}

func appendBackfill(b []byte, p *status.PlanStats, at func(int64) string) []byte {
	last := "N/A"
	if p.LastAt > 0 {
		last = at(p.LastAt)
	}
	b = fmt.Appendf(b, "\nBackfilling stats\n\tTotal backfilled jobs (since last slurm start): %d\n"+
		"\tTotal backfilled jobs (since last stats cycle start): %d\n"+
		"\tTotal backfilled heterogeneous job components: 0\n",
		p.BackfilledEver, p.Backfilled)
	b = fmt.Appendf(b, "\tTotal cycles: %d\n\tLast cycle when: %s\n\tLast cycle: %d\n\tMax cycle:  %d\n",
		p.Cycles, last, p.Last, p.Max)
	if p.Cycles > 0 {
		b = fmt.Appendf(b, "\tMean cycle: %d\n", p.Total/p.Cycles)
	}
	b = fmt.Appendf(b, "\tLast depth cycle: %d\n\tLast depth cycle (try sched): %d\n", p.LastDepth, p.LastDepth)
	if p.Cycles > 0 {
		b = fmt.Appendf(b, "\tDepth Mean: %d\n\tDepth Mean (try depth): %d\n", p.Depth/p.Cycles, p.Depth/p.Cycles)
	}
	b = fmt.Appendf(b, "\tLast queue length: %d\n", p.Queue)
	if p.Cycles > 0 {
		b = fmt.Appendf(b, "\tQueue length mean: %d\n", p.QueueTotal/p.Cycles)
	}
	b = fmt.Appendf(b, "\tLast table size: %d\n", p.Table)
	if p.Cycles > 0 {
		b = fmt.Appendf(b, "\tMean table size: %d\n", p.TableTotal/p.Cycles)
	}
	return b
}

func appendRequests(b []byte, head string, r *status.RequestStats) []byte {
	b = fmt.Appendf(b, head, printable.Escape(r.Name), r.ID)
	return fmt.Appendf(b, "count:%-6d ave_time:%-6d total_time:%d\n", r.Count, r.Total/max(1, r.Count), r.Total)
}
