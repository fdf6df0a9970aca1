package format

import "testing"

// TestDistributionAsRecorded checks what Slurm 22.05.8 shows for steps with these
// values of --distribution.
func TestDistributionAsRecorded(t *testing.T) {
	for given, want := range map[string]string{
		"block": "Block", "cyclic": "Cyclic", "*": "Block", "plane=2": "Plane",
		"arbitrary":   "arbitrary task distribution",
		"block:block": "BBlock", "block:cyclic": "BCyclic", "block:fcyclic": "BFCyclic", "cyclic:block": "CBlock",
		"cyclic:cyclic": "CCyclic", "cyclic:fcyclic": "CFCyclic", "*:cyclic": "BCyclic", "*:*:cyclic": "BCyclicCyclic",
		"block:block:fcyclic": "BBlockFCyclic", "cyclic:fcyclic:fcyclic": "CFCyclicFCyclic",
		"block:fcyclic:block": "BFCyclicBlock",
		"block,pack":          "Block,Pack", "cyclic,nopack": "Cyclic,NoPack",
		"block:cyclic:fcyclic,pack": "BCyclicFCyclic,Pack",
		"":                          "Block", "nonsense": "nonsense",
	} {
		if got := Distribution(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
