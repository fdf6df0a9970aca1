package env

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// unrecorded are options whose variables are not in the recordings: --array needs an
// array task, and the recorder's environment already has the variable of --export.
var unrecorded = []string{"array", "export"}

// always are variables that the recorded cluster sets in every job.
var always = []string{"MEM_PER_CPU"}

// TestOptionsSetVariables compares the variables in the option table with those of
// jobs that ran under Slurm: a variable is set if and only if one of its options was
// given.
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
		if len(o.Sets()) > 0 && !seen[o.Name] && !slices.Contains(unrecorded, o.Name) {
			t.Errorf("--%s: its variables are in no recording", o.Name)
		}
	}
}

func checkSets(t *testing.T, r recorded, names []string) {
	have := toMap(r.Batch)
	expected := map[string]bool{}
	for _, n := range names {
		for _, v := range option.Lookup(option.Sbatch, n).Sets() {
			expected[v] = true
			wholeNode := v == "MEM_PER_NODE" && slices.Contains(r.Args, "--mem=0")
			if _, ok := have["SLURM_"+v]; !ok && !wholeNode {
				t.Errorf("%v: no SLURM_%s", r.Args, v)
			}
		}
	}
	for _, o := range option.Table() {
		for _, v := range o.Sets() {
			// --gres and whole nodes set variables of GPUs too.
			implied := v == "GPUS_ON_NODE" || v == "JOB_GPUS" ||
				v == "THREADS_PER_CORE" && slices.Contains(names, "hint")
			if _, ok := have["SLURM_"+v]; ok && !expected[v] && !implied && !slices.Contains(always, v) {
				t.Errorf("%v: SLURM_%s is set without --%s", r.Args, v, o.Name)
			}
		}
	}
}
