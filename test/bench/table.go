package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// table has the results, a row for each measurement.
type table struct {
	systems []*system
	rows    []row
	load    string // of the machine, before anything was measured
}

type row struct {
	name, goal string
	times      map[*system]samples
}

func (t *table) add(name, goal string, times map[*system]samples) {
	t.rows = append(t.rows, row{name, goal, times})
}

// markdown returns the table with a line about the measurement.
func (t *table) markdown() string {
	var b strings.Builder
	head, rule := "| what (median, and the range) |", "|---|"
	for _, s := range t.systems {
		head += " " + s.name + " |"
		rule += "---|"
	}
	fmt.Fprintf(&b, "%s to pass |\n%s---|\n", head, rule)
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, s := range t.systems {
			fmt.Fprintf(&b, " %s |", cell(r.times[s]))
		}
		fmt.Fprintf(&b, " %s |\n", r.goal)
	}
	b.WriteString(circumstances(t.load))
	return b.String()
}

// circumstances is the line below a table.
func circumstances(load string) string {
	return fmt.Sprintf("\nMeasured on %s with %d CPUs, Linux %s, load %s before.\n",
		time.Now().Format("2006-01-02"), runtime.NumCPU(), firstField("/proc/sys/kernel/osrelease"), load)
}

func cell(s samples) string {
	if len(s) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s (%s to %s)", short(s.median()), short(slices.Min(s)), short(slices.Max(s)))
}

// short formats a duration in the customary unit.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
}

func firstField(file string) string {
	b, _ := os.ReadFile(file)
	f := strings.Fields(string(b))
	if len(f) == 0 {
		return "?"
	}
	return f[0]
}

// marks are the two lines of a page between which a table stands.
type marks struct{ begin, end string }

// publish prints text, and writes it between the page's two marks; page "": prints it only.
func (m marks) publish(page, text string) error {
	fmt.Print(text)
	if page == "" {
		return nil
	}
	return m.replace(page, text)
}

// replace writes text between the page's two marks.
func (m marks) replace(page, text string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(b), m.begin)
	_, after, ended := strings.Cut(rest, m.end)
	if !found || !ended {
		return fmt.Errorf("%s: the marks of the table are missing", page)
	}
	return os.WriteFile(page, []byte(before+m.begin+text+m.end+after), 0o644)
}
