package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// Size of a picture, in SVG user units.
const (
	pictureWidth  = 1600
	pictureHeight = 640
	queueHeight   = 120
	// maxDrawn is the maximum number of jobs in a picture: the first ones of the trace.
	maxDrawn = 20000
)

// picture draws the schedule as SVG, with time on the horizontal axis, processors on the
// vertical axis and a box for each job. A graph below shows the number of processors that
// pending jobs request.
func picture(w io.Writer, machine []backfill.Node, done []*ran) error {
	jobs := slices.SortedFunc(slices.Values(done), func(a, b *ran) int { return cmp.Compare(a.start, b.start) })
	jobs = jobs[:min(len(jobs), maxDrawn)]
	if len(jobs) == 0 {
		return nil
	}
	first, last := jobs[0].submit, int64(0)
	for _, r := range jobs {
		first, last = min(first, r.submit), max(last, r.end)
	}
	top := make([]int, len(machine)+1)
	for i := range machine {
		top[i+1] = top[i] + machine[i].CPUs
	}
	x := func(t int64) float64 { return float64(t-first) / float64(max(1, last-first)) * pictureWidth }
	y := func(line int) float64 { return float64(line) / float64(max(1, top[len(machine)])) * pictureHeight }
	b := &strings.Builder{}
	fmt.Fprintf(
		b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		pictureWidth,
		pictureHeight+queueHeight+30,
	)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#f4f4f4"/>`+"\n", pictureWidth, pictureHeight)
	for _, r := range jobs {
		for _, a := range r.nodes {
			for _, run := range runs(a.CPUs.Members()) {
				fmt.Fprintf(
					b,
					`<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="hsl(%d,55%%,60%%)"><title>job %d, %d processors, waited %d s</title></rect>`+"\n",
					x(
						r.start,
					),
					y(top[a.Node]+run[0]),
					max(0.2, x(r.end)-x(r.start)),
					y(run[1]-run[0]),
					hue(r.user),
					r.id,
					r.processors,
					r.wait(),
				)
			}
		}
	}
	drawQueue(b, jobs, x)
	fmt.Fprintf(
		b,
		`<text x="4" y="%d">%d s to %d s; above: processors, a colour for each user; below: processors that pending jobs request</text>`+"\n</svg>\n",
		pictureHeight+queueHeight+22,
		first,
		last,
	)
	_, err := io.WriteString(w, b.String())
	return err
}

// hue returns the hue of a user's colour.
func hue(user int64) int64 { return ((user*137)%360 + 360) % 360 }

// runs returns the ranges [from, to) of consecutive numbers.
func runs(members []int) [][2]int {
	var out [][2]int
	for _, m := range members {
		if n := len(out); n > 0 && out[n-1][1] == m {
			out[n-1][1]++
			continue
		}
		out = append(out, [2]int{m, m + 1})
	}
	return out
}

// drawQueue draws the processors that pending jobs request as an area.
func drawQueue(b *strings.Builder, jobs []*ran, x func(int64) float64) {
	type change struct {
		at int64
		by int
	}
	var all []change
	for _, r := range jobs {
		all = append(all, change{r.submit, r.processors}, change{r.start, -r.processors})
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	most, level := 1, 0
	for i, c := range all {
		if level += c.by; i+1 == len(all) || all[i+1].at != c.at {
			most = max(most, level)
		}
	}
	bottom := float64(pictureHeight + queueHeight)
	fmt.Fprintf(b, `<path fill="#888" d="M0 %.1f`, bottom)
	level = 0
	for i, c := range all {
		if level += c.by; i+1 == len(all) || all[i+1].at != c.at {
			fmt.Fprintf(b, "H%.2fV%.1f", x(c.at), bottom-float64(level)/float64(most)*(queueHeight-10))
		}
	}
	fmt.Fprintf(b, `V%.1fZ"/>`+"\n", bottom)
}
