package env

import "testing"

// TestExpand compares patterns with the file names of Slurm 22.05.8.
func TestExpand(t *testing.T) {
	batch := PatternValues{JobID: 1515, JobName: "nm", User: "root", Node: "vm", Batch: true}
	task := PatternValues{JobID: 1545, JobName: "wrap", User: "root", Node: "vm", NodeIndex: 1, Task: 1}
	element := PatternValues{JobID: 1540, ArrayJobID: 1540, ArrayTask: 7, Batch: true}
	for _, tt := range []struct {
		values        PatternValues
		pattern, want string
	}{
		{batch, "A%%j", "A%j"}, {batch, "B%5j", "B01515"}, {batch, "C%010j", "C0000001515"},
		{batch, "D%15j", "D0000001515"},
		{batch, "E%A", "E1515"}, {batch, "F%a", "F4294967294"}, {batch, "G%J", "G1515"}, {batch, "H%N", "Hvm"},
		{batch, "I%n", "I0"}, {batch, "J%s", "Jbatch"}, {batch, "K%t", "K0"}, {batch, "L%u", "Lroot"},
		{batch, "M%x", "Mnm"},
		{batch, "N%q", "N%q"}, {batch, "O%3n", "O000"}, {batch, "P%5x", "Pnm"}, {batch, `Q\%j`, "Q%j"}, {batch, "R%", "R%"},
		{batch, "S%5", "S5"}, {batch, `T\\%j`, `T\%j`}, {batch, "U%3%", "U3%"}, {batch, "V%b", "V%b"}, {batch, "W%3a", "W4294967294"},
		{batch, "X%3J", "X1515"}, {batch, `Y\x%j`, "Yx%j"}, {batch, "Z%0j", "Z1515"}, {batch, "c%N-%n-%t-%s-%u", "cvm-0-0-batch-root"},
		{batch, `sf\`, "sf"}, {batch, `sd\\`, `sd\`}, {batch, "sc%5%j", "sc51515"}, {batch, "sg%5%%", "sg5%"},
		{task, `a\\%j`, "a%j"}, {task, `e\\\%j`, "e%j"}, {task, `r\\\\x`, "rx"}, {task, `j\`, "j"}, {task, "w%5%3t", "w5001"},
		{element, "a%A_%a_%5a_%j_%J", "a1540_7_00007_1540_1540"},
		{task, "st-%j-%J-%s-%t-%N-%n-%3t-%x-%u", "st-1545-1545.0-0-1-vm-1-001-wrap-root"},
	} {
		if got := tt.values.Expand(tt.pattern); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.pattern, got, tt.want)
		}
	}
}

func TestPerTask(t *testing.T) {
	for pattern, want := range map[string]bool{"a-%t": true, "%3n": true, "%N": true, "%j-%s": false, "%%t": false} {
		if PerTask(pattern) != want {
			t.Errorf("PerTask(%q) is %v", pattern, !want)
		}
	}
}

func TestOutput(t *testing.T) {
	job, element := PatternValues{JobID: 9, Batch: true}, PatternValues{JobID: 9, ArrayJobID: 9, ArrayTask: 3, Batch: true}
	for _, tt := range []struct {
		values       PatternValues
		out, err     string
		wantO, wantE string
	}{
		{job, "", "", "/w/slurm-9.out", "/w/slurm-9.out"},
		{element, "", "", "/w/slurm-9_3.out", "/w/slurm-9_3.out"},
		{job, "o/%j", "/e", "/w/o/9", "/e"},
	} {
		if o, e := tt.values.Output(tt.out, tt.err, "/w"); o != tt.wantO || e != tt.wantE {
			t.Errorf("%+v: %s %s", tt, o, e)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("%j%5a%%")
	f.Fuzz(func(t *testing.T, pattern string) {
		PatternValues{JobID: 1, Batch: true}.Expand(pattern)
	})
}
