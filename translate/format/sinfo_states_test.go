package format

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// slurmNodeStates are the nodes below that sinfo -t of 22.05.8 listed for each
// state.
const slurmNodeStates = `a=n1 al=n1 allo=n1 alloc=n1 allocated=n1 d= do= dow= down= dr=n3 dra=n3 drai=n3 drain=n3 draine=n3 drained=n3 draini= draining= drn= drng=
i=n2,n3,n4 id=n2,n3,n4 idle=n2,n3,n4 IDLE=n2,n3,n4 m=n1 mi=n1 mix=n1 mixe=n1 mixed=n1 ma=n4 mai=n4 maint=n4 f= fa= fai= fail= fu= fut= future= u= un= unk= unknown=
r=n4 re=n4 res=n4 resv=n4 rese=n4 reserved=n4 reb= reboot= reboot^= p= pl= pla= planned= plnd= plan= po= pow= powering_up= powering_down= powered_down= power_down=
perfctrs= npc= n= no= no_= no_respond= c= co= com= comp= completing= cl= clo= cloud= b= bo= boot= boot^= ?=
idle&drain=n3 drain&mixed= idle&=n2,n3,n4 &idle=n2,n3,n4 maint&resv=n4`

// TestNodeStatesAsSlurmParsesThem compares the nodes that have each state.
func TestNodeStatesAsSlurmParsesThem(t *testing.T) {
	nodes := []status.Node{
		{Name: "n1", State: "MIXED", CPUs: 4, CPUsAlloc: 1}, {Name: "n2", State: "IDLE"},
		{Name: "n3", State: "IDLE", Flags: []string{"DRAIN"}},
		{Name: "n4", State: "IDLE", Flags: []string{"MAINTENANCE", "RESERVED"}},
	}
	for word := range strings.FieldsSeq(slurmNodeStates) {
		typed, want, _ := strings.Cut(word, "=")
		states, bad := NodeStates(typed)
		var got []string
		for i := range nodes {
			if NodeIs(&nodes[i], states) {
				got = append(got, nodes[i].Name)
			}
		}
		if bad != "" || strings.Join(got, ",") != want {
			t.Errorf("%s: %v (bad %q), Slurm lists %s", typed, got, bad, want)
		}
	}
	for _, typed := range []string{"drain_", "maintenance", "failing", "pow_up", "blocked", "invalid_reg", "idle&nosuch"} {
		if _, bad := NodeStates(typed); bad == "" {
			t.Errorf("%s is accepted", typed)
		}
	}
}

// The states of nodes that do not always run have the suffixes of sinfo(1), NODE STATE CODES.
func TestStatesOfNodesThatDoNotAlwaysRun(t *testing.T) {
	for flags, want := range map[string]string{
		"IDLE CLOUD":                      "idle idle",
		"IDLE CLOUD POWERED_DOWN":         "idle~ idle~",
		"IDLE CLOUD POWERING_UP":          "idle# idle#",
		"IDLE CLOUD POWERING_DOWN":        "idle% idle%",
		"IDLE CLOUD POWERED_DOWN PLANNED": "idle~ idle~",
		"IDLE CLOUD PLANNED":              "planned plnd",
		"MIXED CLOUD POWERING_UP":         "mixed# mix#",
		"MIXED CLOUD POWER_DOWN":          "mixed! mix!",
		"ALLOCATED CLOUD POWERING_UP":     "allocated# alloc#",
		"DOWN CLOUD POWERED_DOWN":         "down~ down~",
		"IDLE CLOUD DRAIN POWERED_DOWN":   "drained~ drain~",
	} {
		words := strings.Fields(flags)
		n := &status.Node{State: words[0], Flags: words[1:]}
		if got := NodeState(n, false) + " " + NodeState(n, true); got != want {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
		for _, f := range []string{"CLOUD", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN"} {
			states, bad := NodeStates(strings.ToLower(f))
			if is := NodeIs(n, states); bad != "" || is != hasFlag(n, f) {
				t.Errorf("%s: sinfo -t %s: %v", flags, f, is)
			}
		}
	}
}
