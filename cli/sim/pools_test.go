package sim

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// poolMachine writes a slurm.conf with two nodes that run only while jobs need them.
func poolMachine(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	text := "SuspendTime=30\nResumeProgram=/r\nSuspendProgram=/s\nNodeName=n[1-2] CPUs=1 State=CLOUD\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The first two jobs wait for a node to boot, the third one gets a node that runs, and the
// fourth one comes when all nodes are gone. A job waits for a node that is soon free, unless
// nodes boot for every job that waits.
func TestPools(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.swf")
	var text strings.Builder
	text.WriteString("; MaxProcs: 2\n")
	for _, line := range []string{
		"1 0 -1 100 1 -1 -1 1 100", "2 10 -1 50 1 -1 -1 1 50", "3 130 -1 10 1 -1 -1 1 10",
		"4 1000 -1 70 2 -1 -1 2 70",
	} {
		text.WriteString(line + " -1 1 1 1 -1 1 -1 -1 -1\n")
	}
	if err := os.WriteFile(trace, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	machine := poolMachine(t)
	for _, pools := range []string{"planned", "eager"} {
		r := simReport(t, trace, "--machine", machine, "--pools", pools, "--boot-time", "60")
		// n1 runs from 0 to 190 and n2 from 10 to 170, then both from 1000 to 1130.
		if hours := float64(190+160+130+130) / 3600; r.Pools == nil || r.Pools.Boots != 4 ||
			math.Abs(r.Pools.NodeHours-hours) > 1e-9 || r.MeanWait != (60+60+0+60)/4. {
			t.Errorf("%s: %+v, mean wait %v", pools, r.Pools, r.MeanWait)
		}
	}
	r := simReport(t, trace, "--machine", machine)
	if r.Pools == nil || r.MeanWait != 0 || math.Abs(r.Pools.NodeHours-2*1070./3600) > 1e-9 {
		t.Errorf("always: %+v, mean wait %v", r.Pools, r.MeanWait)
	}
	out, err := simRun(t, trace, "--machine", machine, "--pools", "planned")
	if err != nil || !strings.Contains(out, "boots                  4\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"--pools", "planned"}, {"--machine", machine, "--pools", "x"}, {"--machine", machine, "--boot-time", "0"},
		{"--machine", treeMachine(t), "--pools", "planned"},
	} {
		if _, err := simRun(t, append(args, trace)...); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
