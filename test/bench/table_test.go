package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTableHasAColumnPerSystemAndKeepsThePage(t *testing.T) {
	berth, slurm := &system{name: "Berth"}, &system{name: "Slurm 22.05.8"}
	table := &table{systems: []*system{berth, slurm}}
	table.add("`berth up`", "6 s", map[*system]samples{berth: {3 * time.Second, 1500 * time.Millisecond, 2 * time.Second}})
	table.add("`sbatch`", "", map[*system]samples{berth: {4 * time.Millisecond}, slurm: {50 * time.Millisecond}})
	text := table.markdown()
	for _, want := range []string{
		"| what (median, and the range) | Berth | Slurm 22.05.8 | to pass |\n|---|---|---|---|\n",
		"| `berth up` | 2.0 s (1.5 s to 3.0 s) | – | 6 s |\n",
		"| `sbatch` | 4.0 ms (4.0 ms to 4.0 ms) | 50 ms (50 ms to 50 ms) |  |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	m := queueSuite.marks
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# Top\n"+m.begin+"old\n"+m.end+"Bottom\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.replace(page, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != "# Top\n"+m.begin+"new\n"+m.end+"Bottom\n" {
		t.Errorf("page %q, %v", got, err)
	}
}
