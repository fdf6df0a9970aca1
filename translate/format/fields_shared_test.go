package format

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// TestSharedWidths: columns of one field have one width in sacct and sstat of Slurm
// 22.05.8, the last that was given.
func TestSharedWidths(t *testing.T) {
	table := []Field{{Name: "JobName", Width: 10}, {Name: "Account", Width: 10}}
	for text, want := range map[string][]int{
		"jobname%20,jobname%-20,jobname":    {-20, -20, -20},
		"account%20,jobname,account%4":      {4, 10, 4},
		"jobname%20,account,jobname%10,job": {10, 10, 10, 10},
	} {
		_, fields, bad := ParseSharedFields(table, text, false)
		if bad != "" || len(fields) != len(want) {
			t.Fatalf("%s: %+v %s", text, fields, bad)
		}
		for i, f := range fields {
			got := f.Width
			if f.Left {
				got = -got
			}
			if got != want[i] {
				t.Errorf("%s: column %d has width %d, want %d", text, i, got, want[i])
			}
		}
	}
}

// TestZeroWidth: sacct of Slurm 22.05.8 prints a column of width 0 as a space; sstat ignores
// the width. The number may be followed by anything.
func TestZeroWidth(t *testing.T) {
	table := []Field{{Name: "JobID", Width: 12}, {Name: "User", Width: 9}}
	for _, zero := range []bool{true, false} {
		for text, width := range map[string]int{
			"jobid%0,user": 0, "jobid%,user": 0, "jobid%-x,user": 0, "jobid%3x,user": 3,
		} {
			if width == 0 && !zero {
				width = 12
			}
			_, fields, _ := ParseSharedFields(table, text, zero)
			if fields[0].Width != width || fields[1].Width != 9 {
				t.Errorf("%s %v: %+v", text, zero, fields)
			}
		}
	}
	b := AppendFields(nil, []Field{{Width: 0}, {Width: 4}}, []string{"1001", "me"}, FieldStyle{})
	if string(b) != "   me \n" {
		t.Errorf("%q", b)
	}
}

// TestEmptyPartitions: lines of partitions without nodes as sinfo of Slurm 22.05.8 prints them,
// and by the names of nodes backwards.
func TestEmptyPartitions(t *testing.T) {
	parts := []status.Partition{{Name: "debug"}, {Name: "batch"}}
	rows := []NodeGroup{{Partition: &parts[0]}, {Partition: &parts[1]}}
	SortNodeGroups(rows, "N", false)
	layout, _ := ParseLetters(NodeColumns(), "%R %u %U %v %e %O")
	var lines []string
	for i := range rows {
		lines = append(lines, string(layout.AppendRow(nil, &rows[i], &Settings{})))
	}
	if want := []string{
		"batch root root(0) N/A 0 0.00\n", "debug root root(0) N/A 0 0.00\n",
	}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

// TestFilesOfAllocation: a job without a script has a file for its output, but none for errors,
// in squeue of Slurm 22.05.8.
func TestFilesOfAllocation(t *testing.T) {
	layout, _ := ParseNames(JobColumns(), "StdOut:0,StdErr:|")
	j := status.Job{ID: 12, NoBatch: true, WorkDir: "/home/me"}
	if got := string(layout.AppendRow(nil, &j, &Settings{})); got != "/home/me/slurm-12.outN/A|\n" {
		t.Errorf("%q", got)
	}
}
