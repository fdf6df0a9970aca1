package sim

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// figures are the statistics of a replay, or of one user's jobs.
type figures struct {
	User        *int64  `json:"user,omitempty"`
	Jobs        int     `json:"jobs"`
	MeanWait    float64 `json:"mean_wait_s"`
	MedianWait  float64 `json:"median_wait_s"`
	P95Wait     float64 `json:"p95_wait_s"`
	MaxWait     int64   `json:"max_wait_s"`
	Slowdown    float64 `json:"mean_bounded_slowdown"`
	MeanFlow    float64 `json:"mean_flow_s"`
	Utilization float64 `json:"utilization"`
	Makespan    int64   `json:"makespan_s"`
}

// report is the result of a replay.
type report struct {
	Policy     string `json:"policy"`
	Estimates  string `json:"estimates"`
	Processors int    `json:"processors"`
	Dropped    int    `json:"dropped"`
	figures
	Network *switchFigures `json:"network,omitempty"` // nil: the machine has no switches
	Pools   *poolFigures   `json:"pools,omitempty"`   // nil: all nodes run always
	Users   []figures      `json:"users,omitempty"`
}

// figuresOf returns the statistics of jobs on a machine with the given number of
// processors, from the first submission to the last end. Percentiles are nearest-rank.
func figuresOf(done []*ran, processors int) figures {
	f := figures{Jobs: len(done)}
	if len(done) == 0 {
		return f
	}
	waits := make([]int64, len(done))
	first, last := done[0].submit, int64(0)
	work, waited, flow := 0.0, 0.0, 0.0
	for i, r := range done {
		waits[i] = r.wait()
		first, last = min(first, r.submit), max(last, r.end)
		work += float64(r.run) * float64(r.processors)
		waited += float64(r.wait())
		flow += float64(r.wait() + r.run)
		f.Slowdown += r.slowdown()
	}
	slices.Sort(waits)
	n := float64(len(done))
	f.MeanWait, f.Slowdown, f.MeanFlow = waited/n, f.Slowdown/n, flow/n
	f.MedianWait, f.P95Wait = float64(rank(waits, 50)), float64(rank(waits, 95))
	f.MaxWait, f.Makespan = waits[len(waits)-1], last-first
	f.Utilization = work / (float64(f.Makespan) * float64(processors))
	return f
}

// rank returns the p-th percentile of sorted values.
func rank(sorted []int64, p int) int64 { return sorted[(len(sorted)*p+99)/100-1] }

// perUser returns the statistics of each user, ordered by the user's number.
func perUser(done []*ran, processors int) []figures {
	by := map[int64][]*ran{}
	for _, r := range done {
		by[r.user] = append(by[r.user], r)
	}
	out := make([]figures, 0, len(by))
	for user, jobs := range by {
		f := figuresOf(jobs, processors)
		f.User = &user
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b figures) int { return cmp.Compare(*a.User, *b.User) })
	return out
}

// row returns the statistics as text, in the order of columns.
func (f *figures) row() []string {
	real := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	return []string{
		strconv.Itoa(f.Jobs),
		real(f.MeanWait),
		real(f.MedianWait),
		real(f.P95Wait),
		strconv.FormatInt(f.MaxWait, 10),
		real(
			f.Slowdown,
		),
		real(f.MeanFlow),
		strconv.FormatFloat(f.Utilization, 'f', 4, 64),
		strconv.FormatInt(f.Makespan, 10),
	}
}

var columns = []string{"jobs", "mean_wait_s", "median_wait_s", "p95_wait_s", "max_wait_s",
	"mean_bounded_slowdown", "mean_flow_s", "utilization", "makespan_s"}

// write prints the report as text, json or csv.
func (r *report) write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "csv":
		return r.writeCSV(w)
	}
	return r.writeText(w)
}

func (r *report) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{append([]string{"user"}, columns...), append([]string{""}, r.row()...)}
	for i := range r.Users {
		u := &r.Users[i]
		rows = append(rows, append([]string{strconv.FormatInt(*u.User, 10)}, u.row()...))
	}
	return c.WriteAll(rows)
}

func (r *report) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(
		t,
		"policy\t%s\nestimates\t%s\nprocessors\t%d\ndropped jobs\t%d\n",
		r.Policy,
		r.Estimates,
		r.Processors,
		r.Dropped,
	)
	for i, text := range r.row() {
		fmt.Fprintf(t, "%s\t%s\n", columns[i], text)
	}
	if f := r.Network; f != nil {
		fmt.Fprintf(t, "mean_switches\t%.2f\nmean_largest_block_nodes\t%.2f\n", f.MeanSwitches, f.MeanLargestBlock)
	}
	if f := r.Pools; f != nil {
		fmt.Fprintf(t, "node_hours\t%.1f\nboots\t%d\n", f.NodeHours, f.Boots)
	}
	if err := t.Flush(); err != nil || len(r.Users) == 0 {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nuser\tjobs\tmean wait\tmedian\t95 %%\tlongest\tslowdown\t\n")
	for i := range r.Users {
		u := &r.Users[i]
		fmt.Fprintf(
			t,
			"%d\t%d\t%.0f\t%.0f\t%.0f\t%d\t%.2f\t\n",
			*u.User,
			u.Jobs,
			u.MeanWait,
			u.MedianWait,
			u.P95Wait,
			u.MaxWait,
			u.Slowdown,
		)
	}
	return t.Flush()
}

// writeStarts prints a line for each job, in the order of the trace.
func writeStarts(w io.Writer, done []*ran) error {
	byPlace := slices.SortedFunc(slices.Values(done), func(a, b *ran) int { return cmp.Compare(a.place, b.place) })
	for _, r := range byPlace {
		if _, err := fmt.Fprintln(w, r.id, r.submit, r.start, r.end, r.processors); err != nil {
			return err
		}
	}
	return nil
}
