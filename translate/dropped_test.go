package translate

import (
	"cmp"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/translate/option"
)

// TestNothingIsDroppedSilently checks that a warning names each option without
// effect in the recorded scripts and calls.
func TestNothingIsDroppedSilently(t *testing.T) {
	status, words := map[string]option.Status{}, map[string]string{}
	for _, o := range option.Table() {
		if o.In&option.Sbatch != 0 {
			status[o.Name], _ = o.For(option.Sbatch)
			words[o.Name] = cmp.Or(o.Warning, "--"+o.Name)
		}
	}
	warned := 0
	for _, v := range readLines[vector](t, "testdata/sbatch.jsonl") {
		in := Input{
			Args: v.Args, Env: v.Env, Script: []byte(v.Script), Dir: "/tmp/vectors",
			Now: time.Unix(1800000000, 0), Umask: -1,
			ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		}
		if strings.Contains(strings.Join(v.Args, " "), "--wrap") {
			in.Script = nil
		}
		if strings.HasPrefix(v.Name, "het ") || strings.Contains(v.Script, "hetjob") {
			continue // split into components before options are parsed
		}
		in.script = readScript(&in)
		p := option.New(option.Sbatch)
		if _, err := parse(&in, p); err != nil {
			continue // refused
		}
		warnings := strings.Join(p.Warnings, "\n")
		for name, given := range p.Given {
			is, known := status[name]
			switch {
			case !known:
				t.Errorf("%s: --%s is not in the table", v.Name, name)
			case given.From == option.FromEnv || given.From == option.FromDefault:
			case is == option.Warned:
				warned++
				if !strings.Contains(warnings, words[name]) {
					t.Errorf("%s: no warning that --%s has no effect", v.Name, name)
				}
			case is == option.Refused:
				t.Errorf("%s: --%s has status refused, and was accepted", v.Name, name)
			}
		}
	}
	if warned < 5 {
		t.Errorf("only %d options had no effect", warned)
	}
}
