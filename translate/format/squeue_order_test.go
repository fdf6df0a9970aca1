package format

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// The orders of squeue -S of a real Slurm 22.05.8 for the same jobs.
func TestOrdersOfASlurm(t *testing.T) {
	jobs := []status.Job{
		{ID: 1, Name: "run", State: "RUNNING", NodeList: "n1", Start: 10, TimeLimit: 600, Priority: 261},
		{ID: 2, Name: "held", State: "PENDING", Priority: 0, TimeLimit: -1},
		{ID: 3, Name: "wait", State: "PENDING", Priority: 258, TimeLimit: -1, Start: 5000000},
		{ID: 4, Name: "array", State: "PENDING", Priority: 0, TimeLimit: -1},
		{ID: 5, Name: "other", State: "PENDING", Priority: 0, TimeLimit: -1},
		{ID: 6, Name: "run2", State: "RUNNING", NodeList: "n2", Start: 20, TimeLimit: 600, Priority: 258},
		{ID: 7, Name: "run4", State: "RUNNING", NodeList: "n3", Start: 21, TimeLimit: 500, Priority: 258},
	}
	for order, want := range map[string]string{
		"N":  "run run2 run4 held array other wait",
		"-N": "wait other array held run4 run2 run",
		"e":  "other array held run4 run run2 wait",
		"-e": "wait run2 run run4 other array held",
		"S":  "run run2 run4 wait held array other",
		"-S": "wait run4 run2 run held array other",
		// Sorting by start and nodes turns the order around of jobs that have neither.
		"N,j":  "run run2 run4 wait other held array",
		"N,-j": "run run2 run4 array held other wait",
		"-N,j": "array held other wait run4 run2 run",
		"S,j":  "run run2 run4 wait other held array",
		"e,j":  "array held other run4 run run2 wait",
		"n":    "wait run4 run2 run other array held",
		",":    "wait run4 run2 run other array held",
	} {
		var got []string
		for _, j := range SortJobs(jobs, order) {
			got = append(got, j.Name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("-S %s: %s, want %s", order, s, want)
		}
	}
}

func TestUsedGRES(t *testing.T) {
	for _, c := range []struct{ gres, used, devices, want string }{
		{"gpu:tesla:2", "", "", "gpu:tesla:0(IDX:N/A)"},
		{"gpu:tesla:2", "gpu:tesla:1", "gpu:tesla:1(IDX:0)", "gpu:tesla:1(IDX:0)"},
		{"gpu:tesla:2", "gpu:tesla:1", "", "gpu:tesla:1"},
		{"", "", "", ""},
	} {
		if got := usedGRES(&status.Node{GRES: c.gres, GRESUsed: c.used, GRESDevices: c.devices}, nil); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.gres, c.used, got, c.want)
		}
	}
}

// TestNullOfNarrowColumns: the C library prints a null pointer, or nothing where only a part
// of the word is wanted.
func TestNullOfNarrowColumns(t *testing.T) {
	l, _ := ParseLetters(JobColumns(), "%3k|%5f|%.3k|%6k|%k")
	if got := string(l.AppendRow(nil, &status.Job{}, &Settings{})); got != "   |     |(nu|(null)|(null)\n" {
		t.Errorf("%q", got)
	}
}

// TestFlagsInOneLine: Slurm does not separate these flags.
func TestFlagsInOneLine(t *testing.T) {
	j := &status.Job{EnforceBind: "No", KillInvalid: "Yes", SpreadJob: true, DelayBoot: -1}
	if got := jobFlags(j); got != "GresEnforceBind=NoKillOInInvalidDependent=YesSpreadJob=Yes" {
		t.Error(got)
	}
	if got := delayBoot(j.DelayBoot); got != "UNLIMITED" {
		t.Error(got)
	}
}

// TestWaitsOfTheFuture: sacct of 22.05.8 for a job with --begin.
func TestWaitsOfTheFuture(t *testing.T) {
	r := &AcctRow{Job: &status.Record{Eligible: 1100, ReqCPUs: 2}}
	s := &AcctSettings{Settings: Settings{Now: 1000}}
	for name, want := range map[string]string{"Reserved": "INVALID", "ResvCPU": "INVALID", "ResvCPURAW": "4294967096"} {
		if got := AcctValue(name, r, s); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Steps of a real Slurm 22.05.8: the order of their records, where -S leaves them equal, has the
// batch step first; "i" has it last, and j is no key.
func TestOrdersOfStepsOfASlurm(t *testing.T) {
	steps := []status.Step{
		{JobID: 1, ID: "1.batch", Number: -5, Name: "batch", Start: 10, NodeList: "n1"},
		{JobID: 2, ID: "2.batch", Number: -5, Name: "batch", Start: 12, NodeList: "n2"},
		{JobID: 2, ID: "2.0", Number: 0, Name: "sleep", Start: 12, NodeList: "n2"},
		{JobID: 3, ID: "3.batch", Number: -5, Name: "batch", Start: 14, NodeList: "n3"},
	}
	for order, want := range map[string]string{
		StepOrder: "1.batch 2.0 2.batch 3.batch",
		"i":       "1.batch 2.0 2.batch 3.batch",
		"-i":      "3.batch 2.batch 2.0 1.batch",
		"1":       "1.batch 2.batch 2.0 3.batch",
		"j":       "1.batch 2.batch 2.0 3.batch",
		"-j":      "1.batch 2.batch 2.0 3.batch",
		"N":       "1.batch 2.batch 2.0 3.batch",
		"-S":      "3.batch 2.batch 2.0 1.batch",
		"M":       "3.batch 2.batch 2.0 1.batch",
	} {
		rows := slices.Clone(steps)
		SortSteps(rows, order, &Settings{Now: 20})
		var got []string
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("-S %s: %s, want %s", order, s, want)
		}
	}
}
