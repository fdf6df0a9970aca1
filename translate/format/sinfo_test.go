package format

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// nodeRows returns the recorded nodes.
func (l *listing) nodeRows() []status.Node {
	var out []status.Node
	for _, m := range l.Nodes.Nodes {
		j := slurmJob(m)
		n := status.Node{
			Name:       j.text("name"),
			Address:    j.text("address"),
			Host:       j.text("hostname"),
			State:      strings.ToUpper(j.text("state")),
			CPUs:       j.small("cpus"),
			CPUsAlloc:  j.small("alloc_cpus"),
			Sockets:    j.small("sockets"),
			Cores:      j.small("cores"),
			Threads:    j.small("threads"),
			Memory:     j.number("real_memory"),
			MemAlloc:   j.number("alloc_memory"),
			TmpDisk:    j.number("temporary_disk"),
			Features:   split(j.text("features")),
			GRES:       j.text("gres"),
			GRESUsed:   j.text("gres_used"),
			Boot:       j.number("boot_time"),
			AgentStart: j.number("slurmd_start_time"),
			Version:    j.text("slurmd_version"),
			OS:         j.text("operating_system"),
			Arch:       j.text("architecture"),
			Weight:     j.small("weight"),
			Load:       j.small("cpu_load"),
			FreeMem:    j.number("free_memory"),
			Port:       j.small("port"),
			LastBusy:   j.number("last_busy"),
		}
		for _, p := range m["partitions"].([]any) {
			n.Partitions = append(n.Partitions, p.(string))
		}
		out = append(out, n)
	}
	return out
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// recordedPartitions are those of the recorded cluster.
var recordedPartitions = []status.Partition{
	{Name: "debug", Default: true, State: "UP", MaxTime: -1, Nodes: []string{"n1", "n2", "n3", "n4"}, PriorityTier: 1,
		PriorityJobFactor: 1},
	{Name: "batch", State: "UP", MaxTime: 30, DefaultTime: 5, MaxNodes: 1, Nodes: []string{"n3", "n4"},
		PriorityTier: 1, PriorityJobFactor: 10, MaxMemPerNode: 2000},
}

// TestTruncatedDefaultPartition checks that the star of the default partition is kept.
func TestTruncatedDefaultPartition(t *testing.T) {
	for text, want := range map[string]string{"%5P|": "debu*|\n", "%4P|": "deb*|\n", "%.4P": "deb*\n", "%8P|": "debug*  |\n", "%P": "debug*\n"} {
		l, _ := ParseNodeLetters(text)
		g := NodeGroup{Partition: &recordedPartitions[0]}
		if got := string(l.AppendRow(nil, &g, &Settings{})); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// changing are columns whose values changed between the recorded calls.
var changing = []string{
	"%O",
	"%e",
	"%t",
	"%T",
	"%C",
	"%A",
	"%F",
	"%G",
	"CPUsLoad",
	"FreeMem",
	"AllocMem",
	"CPUsState",
	"NodeAI",
	"NodeAIOT",
	"GresUsed",
	"State",
}

// TestSinfoAsSlurmPrintsIt compares every letter of -o and name of -O: the headers,
// and the values that did not change.
func TestSinfoAsSlurmPrintsIt(t *testing.T) {
	l := readListing(t)
	nodes := l.nodeRows()
	for _, c := range l.Calls {
		at := slices.IndexFunc(c.Args, func(a string) bool { return a == "-o" || a == "-O" })
		if c.Args[0] != "sinfo" || at < 0 || !strings.Contains(c.Args[at+1], "|") {
			continue
		}
		single := c.Args[1] == "-N"
		var layout Layout[NodeGroup]
		var bad []string
		if c.Args[at] == "-o" {
			layout, bad = ParseNodeLetters(c.Args[at+1])
		} else {
			layout, bad = ParseNodeNames(c.Args[at+1])
		}
		if (len(bad) > 0) != (c.Err != "") {
			t.Errorf("%q: bad %q, Slurm prints %q", c.Args, bad, c.Err)
			continue
		}
		varies := slices.ContainsFunc(changing, func(k string) bool { return strings.Contains(c.Args[at+1], k) })
		rows := GroupNodes(layout, recordedPartitions, nodes, single, single)
		order := "#P,-t"
		if single {
			order = "N"
		}
		SortNodeGroups(rows, order, false)
		have := []string{strings.TrimSuffix(string(layout.AppendHeader(nil)), "\n")}
		for i := range rows {
			line := layout.AppendRow(nil, &rows[i], &Settings{Now: c.Before, Cluster: "ref"})
			have = append(have, strings.TrimSuffix(string(line), "\n"))
		}
		want := strings.Split(strings.TrimSuffix(c.Out, "\n"), "\n")
		if varies {
			have, want = have[:1], want[:1]
		}
		if single { // the order of a node's partitions is not defined in Slurm
			slices.Sort(have[1:])
			slices.Sort(want[1:])
		}
		if !slices.Equal(have, want) {
			t.Errorf("%q:\n  have %q\n  want %q", c.Args[1:], have, want)
		}
	}
}

func TestOverTimeLimit(t *testing.T) {
	for minutes, want := range map[int32]string{0: "NONE", 5: "5", math.MaxInt32: "UNLIMITED"} {
		p := status.Partition{Name: "p", OverTimeLimit: minutes}
		if got := string(PartitionRecord(&p, nil).Append(nil, true)); !strings.Contains(got, " OverTimeLimit="+want+" ") {
			t.Errorf("%d: want %s in %s", minutes, want, got)
		}
	}
}

// TestOrderOfLines: without an order, lines are in the order of their first nodes; N sorts by
// them, and C is no key (Slurm 22.05.8). Lines without nodes need a column with the partition.
func TestOrderOfLines(t *testing.T) {
	parts := []status.Partition{{Name: "debug", Nodes: []string{"n1", "n2", "n10"}}, {Name: "batch", Nodes: []string{"n2", "n10"}}}
	nodes := []status.Node{{Name: "n1", State: "MIXED"}, {Name: "n2", State: "MIXED"}, {Name: "n10", State: "IDLE"}}
	layout, _ := ParseNodeLetters("%P %t")
	for order, want := range map[string]string{
		",":    "debug MIXED,batch MIXED,debug IDLE,batch IDLE",
		"C":    "debug MIXED,batch MIXED,debug IDLE,batch IDLE",
		"N":    "debug MIXED,batch MIXED,debug IDLE,batch IDLE",
		"-N":   "debug IDLE,batch IDLE,batch MIXED,debug MIXED",
		"#P,N": "debug MIXED,debug IDLE,batch MIXED,batch IDLE",
	} {
		rows := GroupNodes(layout, parts, nodes, false, false)
		SortNodeGroups(rows, order, false)
		var got []string
		for _, r := range rows {
			got = append(got, r.Partition.Name+" "+r.Nodes[0].State)
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("-S %s: %s, want %s", order, s, want)
		}
	}
	// With a line for each node, they stay in the order of partitions where the order leaves them equal.
	for order, want := range map[string]string{
		"%": "n1 debug,n2 debug,n10 debug,n2 batch,n10 batch",
		"N": "n1 debug,n2 debug,n2 batch,n10 debug,n10 batch",
		"t": "n10 debug,n10 batch,n1 debug,n2 debug,n2 batch",
	} {
		rows := GroupNodes(layout, parts, nodes, true, true)
		SortNodeGroups(rows, order, true)
		var got []string
		for _, r := range rows {
			got = append(got, r.Nodes[0].Name+" "+r.Partition.Name)
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("-N -S %s: %s, want %s", order, s, want)
		}
	}
	for format, want := range map[string]int{"%P %a": 2, "%R": 2, "%a": 0, "%l %g": 0} {
		layout, _ := ParseNodeLetters(format)
		if rows := GroupNodes(layout, parts, nil, false, false); len(rows) != want {
			t.Errorf("%s: %d lines, want %d", format, len(rows), want)
		}
	}
}
