package env

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// unrecorded are options whose variables no recording shows: one that needs a
// task of an array, one that the recorder's environment already has, and what
// the recorded cluster's devices could not serve.
var unrecorded = []string{"array", "export"}

// always are variables that the recorded cluster gives to every job.
var always = []string{"MEM_PER_CPU"}

// TestOptionsSetVariables holds the variables that the option table names
// against jobs that ran under Slurm: they are there when the option was given,
// and not when no option that sets them was.
func TestOptionsSetVariables(t *testing.T) {
	f, err := os.Open("../testdata/env.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		names, _, err := option.Scan(option.Sbatch, r.Args)
		if err != nil {
			t.Fatal(err)
		}
		checkSets(t, r, names)
		for _, n := range names {
			seen[n] = true
		}
	}
	for _, o := range option.Table() {
		if len(o.Sets) > 0 && !seen[o.Name] && !slices.Contains(unrecorded, o.Name) {
			t.Errorf("--%s: no recording shows the variables that it is said to set", o.Name)
		}
	}
}

func checkSets(t *testing.T, r recorded, names []string) {
	have := toMap(r.Batch)
	expected := map[string]bool{}
	for _, n := range names {
		for _, v := range option.Lookup(option.Sbatch, n).Sets {
			expected[v] = true
			if _, ok := have["SLURM_"+v]; !ok && (v != "MEM_PER_NODE" || !slices.Contains(r.Args, "--mem=0")) {
				t.Errorf("%v: no SLURM_%s", r.Args, v)
			}
		}
	}
	for _, o := range option.Table() {
		for _, v := range o.Sets {
			implied := v == "THREADS_PER_CORE" && slices.Contains(names, "hint") || v == "GPUS_ON_NODE" || v == "JOB_GPUS" // with --gres and whole nodes, too
			if _, ok := have["SLURM_"+v]; ok && !expected[v] && !implied && !slices.Contains(always, v) {
				t.Errorf("%v: SLURM_%s is set without --%s", r.Args, v, o.Name)
			}
		}
	}
}
