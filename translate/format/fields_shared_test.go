package format

import "testing"

// TestSharedWidths: columns of one field have one width in sacct and sstat of Slurm
// 22.05.8, the last that was given.
func TestSharedWidths(t *testing.T) {
	table := []Field{{Name: "JobName", Width: 10}, {Name: "Account", Width: 10}}
	for text, want := range map[string][]int{
		"jobname%20,jobname%-20,jobname":    {-20, -20, -20},
		"account%20,jobname,account%4":      {4, 10, 4},
		"jobname%20,account,jobname%10,job": {10, 10, 10, 10},
	} {
		_, fields, bad := ParseSharedFields(table, text)
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
