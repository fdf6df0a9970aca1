package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// write writes the report to the file of the flags.
func (r *run) write(o *options, took time.Duration) error {
	out := io.Writer(os.Stdout)
	if o.report != "" {
		f, err := os.Create(o.report)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	b := bufio.NewWriter(out)
	fmt.Fprintf(b, "# Berth and Slurm compared\n\nSeed %d, %s.\n\n", o.seed, took.Round(time.Second))
	r.table(b)
	expected := map[string][]*cause{} // by the row of the page
	i := 0
	for _, c := range r.sorted() {
		if c.row != "" {
			expected[c.row] = append(expected[c.row], c)
			continue
		}
		i++
		writeCause(b, i, c)
	}
	fmt.Fprint(b, "\n## Differences on purpose\n\n")
	for _, row := range slices.Sorted(maps.Keys(expected)) {
		for _, c := range expected[row] {
			fmt.Fprintf(b, "- %s, %d times: %s (`%s`)\n", row, c.count, c.signature, c.best.call)
		}
	}
	return b.Flush()
}

// table writes the numbers of each command.
func (r *run) table(w io.Writer) {
	fmt.Fprint(w, "| command | calls | equal | differing | of them only one refuses | unstable |\n|---|---|---|---|---|---|\n")
	var total [5]int
	for _, name := range slices.Sorted(maps.Keys(r.calls)) {
		row := [5]int{r.calls[name], r.equal[name], r.differing[name], r.refused[name], r.unstable[name]}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d |\n", name, row[0], row[1], row[2], row[3], row[4])
		for i, n := range row {
			total[i] += n
		}
	}
	fmt.Fprintf(w, "| all | %d | %d | %d | %d | %d |\n\n%d causes\n", total[0], total[1], total[2], total[3], total[4],
		len(r.causes))
}

// sorted returns the causes, the most frequent first.
func (r *run) sorted() []*cause {
	return slices.SortedFunc(maps.Values(r.causes), func(a, b *cause) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.signature, b.signature), cmp.Compare(a.row, b.row))
	})
}

// writeCause writes a cause with its shortest example.
func writeCause(w io.Writer, i int, c *cause) {
	fmt.Fprintf(w, "\n## %d. %d times: %s\n\n", i, c.count, c.signature)
	names := slices.SortedFunc(maps.Keys(c.options), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.options[b], c.options[a]), cmp.Compare(a, b))
	})
	if len(names) > 0 {
		fmt.Fprintf(w, "Options: %s\n\n", strings.Join(names[:min(8, len(names))], ", "))
	}
	d := c.best.difference
	fmt.Fprintf(w, "    %s\n\n    S %s: %s\n    B %s: %s\n", c.best.call, d.where, d.slurm, d.where, d.berth)
	if c.best.call.kind == query {
		fmt.Fprint(w, "\nBoth answers:\n\n")
		writeAnswer(w, "S", c.best.slurm)
		writeAnswer(w, "B", c.best.berth)
	}
}

// writeAnswer writes the first lines of an answer.
func writeAnswer(w io.Writer, name string, lines []line) {
	const most = 12
	for _, l := range lines[:min(len(lines), most)] {
		fmt.Fprintf(w, "    %s %s: %s\n", name, l.where, l.text)
	}
	if len(lines) > most {
		fmt.Fprintf(w, "    %s ... %d lines more\n", name, len(lines)-most)
	}
}
