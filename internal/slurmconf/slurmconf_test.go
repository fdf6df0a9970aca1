package slurmconf

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// files reads from a map; the first file is "slurm.conf".
func files(text string, more ...string) func(string) ([]byte, error) {
	all := map[string]string{"slurm.conf": text}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return func(name string) ([]byte, error) {
		if text, ok := all[name]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

func parse(t *testing.T, text string, more ...string) *Config {
	t.Helper()
	c, err := Parse("slurm.conf", files(text, more...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReference(t *testing.T) {
	c, err := Parse("testdata/reference.conf", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Cluster
	if s.ClusterName != "reference" || s.FirstJobID != 1001 || *s.KillWait != 5 || *s.MinJobAge != 300 || *s.SlurmdTimeout != 240 ||
		!reflect.DeepEqual(
			s.PropagateResourceLimitsExcept,
			[]string{"MEMLOCK"},
		) || s.MaxArraySize != 10001 || s.MaxJobs != 50000 || !*s.JobRequeue || s.EnforcePartLimits != "ALL" || *s.DefMemPerCPU != 100 {
		t.Errorf("cluster: %+v", s)
	}
	weights := map[string]int64{"age": 1000, "fairshare": 1000, "jobsize": 100, "partition": 1000, "qos": 1000}
	if !reflect.DeepEqual(s.PriorityWeights, weights) {
		t.Errorf("weights: %v", s.PriorityWeights)
	}
	if len(c.Nodes) != 4 {
		t.Fatalf("nodes: %+v", c.Nodes)
	}
	want := Node{
		Name: "n2", CPUs: 4, Sockets: 1, CoresPerSocket: 4, ThreadsPerCore: 1, RealMemory: 4000, TmpDisk: 1000,
		Features: []string{"fast", "red"}, GRES: []GRES{{"gpu", "tesla", 2}},
	}
	if !reflect.DeepEqual(c.Nodes[1], want) {
		t.Errorf("node: %+v", c.Nodes[1])
	}
	for i, want := range []string{"1", "2"} { // the order of sinfo
		if have := c.Partitions[i].Annotations[v1alpha1.OrderAnnotation]; have != want {
			t.Errorf("the order of %s is %q, not %q", c.Partitions[i].Name, have, want)
		}
	}
	debug, batch := c.Partitions[0].Spec, c.Partitions[1].Spec
	if !debug.Default || debug.MaxTime != job.Unlimited || debug.Nodes != "n[1-4]" || debug.OverSubscribe != "NO" {
		t.Errorf("debug: %+v", debug)
	}
	if batch.Default || batch.MaxTime != 30 || batch.DefaultTime != 5 || batch.MaxNodes != 1 ||
		*batch.MaxMemPerNode != 2000 ||
		batch.PriorityJobFactor != 10 {
		t.Errorf("batch: %+v", batch)
	}
	if s.Parameters["SlurmctldHost"] != "head(127.0.0.1)" {
		t.Errorf("parameters: %v", s.Parameters)
	}
	var unsupported []string
	for _, w := range c.Warnings {
		if !w.DaemonOnly {
			unsupported = append(unsupported, w.Key)
		}
	}
	if got := strings.Join(unsupported, " "); got != "AccountingStoreFlags RebootProgram" {
		t.Errorf("unsupported: %s", got)
	}
}

func TestLines(t *testing.T) {
	c := parse(
		t,
		"clustername = \"my one\" # named so\nNODENAME=a \\\n  cpus=2 \\\n\n# nothing\nFirstJobId=7 MaxArraySize=5\nInclude sub/more.conf\n",
		"sub/more.conf",
		"include nodes\nSlurmUser=a\\#b # c",
		"sub/nodes",
		"NodeName=b",
	)
	if c.Cluster.ClusterName != "my one" || c.Cluster.FirstJobID != 7 || c.Cluster.MaxArraySize != 5 {
		t.Errorf("%+v", c.Cluster)
	}
	if c.Cluster.Parameters["SlurmUser"] != "a#b" {
		t.Errorf("%v", c.Cluster.Parameters)
	}
	if len(c.Nodes) != 2 || c.Nodes[0].CPUs != 2 || c.Nodes[1].Name != "b" {
		t.Errorf("%+v", c.Nodes)
	}
}

func TestGeometry(t *testing.T) {
	for _, c := range []struct {
		line                          string
		cpus, sockets, cores, threads int
		warns                         bool
	}{
		{"", 1, 1, 1, 1, false},
		{"CPUs=8", 8, 8, 1, 1, false},
		{"CPUs=8 ThreadsPerCore=2", 8, 4, 1, 2, false},
		{"Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 16, 2, 4, 2, false},
		{"Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16, 4, 4, 1, false},
		{"CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 2, 4, 1, false},
		{"CPUs=2 Sockets=2 CoresPerSocket=4", 2, 2, 1, 1, false},
		{"CPUs=7 Sockets=2 CoresPerSocket=4", 8, 2, 4, 1, true},
	} {
		got := parse(t, "NodeName=n "+c.line)
		n := got.Nodes[0]
		if n.CPUs != c.cpus || n.Sockets != c.sockets || n.CoresPerSocket != c.cores || n.ThreadsPerCore != c.threads {
			t.Errorf("%s: %+v", c.line, n)
		}
		if (len(got.Warnings) > 0) != c.warns {
			t.Errorf("%s: warnings %v", c.line, got.Warnings)
		}
	}
}

func TestDefaultsAndSets(t *testing.T) {
	c := parse(t, `
NodeName=DEFAULT CPUs=4 RealMemory=2G Feature=x
NodeName=a[1-2]
NodeName=default Feature=y Weight=3
NodeName=b[1-3] CPUs=2
NodeName=f1 State=FUTURE
NodeSet=ys Feature=y
DownNodes=b2 State=DRAIN Reason="bad fan"
PartitionName=DEFAULT MaxTime=1-0 LLN=YES
PartitionName=one Nodes=a1,ys Default=YES
PartitionName=Two_X Nodes=ALL Default=YES AllowGroups=ALL DenyAccounts=c,d
PartitionName=none
`)
	if n := c.Nodes[0]; n.CPUs != 4 || n.RealMemory != 2048 || n.Features[0] != "x" {
		t.Errorf("a1: %+v", n)
	}
	if n := c.Nodes[3]; n.Name != "b2" || n.CPUs != 2 || n.Weight != 3 || n.State != "drain" || n.Reason != "bad fan" ||
		n.RealMemory != 2048 {
		t.Errorf("b2: %+v", n)
	}
	if len(c.Nodes) != 5 || len(c.Partitions) != 2 {
		t.Fatalf("%d nodes, %d partitions", len(c.Nodes), len(c.Partitions))
	}
	one, two := c.Partitions[0], c.Partitions[1]
	if one.Spec.Default || !two.Spec.Default || one.Spec.Nodes != "a1,b[1-3]" || one.Spec.MaxTime != 1440 {
		t.Errorf("one: %+v", one.Spec)
	}
	if two.Name != v1alpha1.PartitionObject("Two_X") || two.Annotations[v1alpha1.NameAnnotation] != "Two_X" ||
		two.Spec.Nodes != "ALL" || two.Spec.AllowGroups != nil ||
		len(two.Spec.DenyAccounts) != 2 {
		t.Errorf("two: %s %+v", two.Name, two.Spec)
	}
	if got := len(c.Warnings); got != 3 { // FUTURE, LLN once, no nodes
		t.Errorf("warnings: %v", c.Warnings)
	}
}

// TestAll: ALL is kept as a value in these lists, unlike in AllowGroups.
func TestAll(t *testing.T) {
	s := parse(t, "AccountingStorageEnforce=ALL\nPrivateData=all\nPropagateResourceLimitsExcept=ALL\n").Cluster
	for _, have := range [][]string{s.AccountingStorageEnforce, s.PrivateData, s.PropagateResourceLimitsExcept} {
		if len(have) != 1 || !strings.EqualFold(have[0], "all") {
			t.Errorf("%v, want all", have)
		}
	}
}

func TestGRES(t *testing.T) {
	c := parse(t, "NodeName=n Gres=gpu:a100:2,gpu:v100:1,tmp:4G,craynetwork,lustre:no_consume:4\n")
	want := []GRES{
		{"gpu", "a100", 2},
		{"gpu", "v100", 1},
		{"tmp", "", 4 << 30},
		{"craynetwork", "", 1},
		{"lustre", "", 4},
	}
	if !reflect.DeepEqual(c.Nodes[0].GRES, want) {
		t.Errorf("%+v", c.Nodes[0].GRES)
	}
	if len(c.Warnings) != 1 {
		t.Errorf("%v", c.Warnings)
	}
}

func TestErrorsHaveFileAndLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\n\nnonsense here\n", `slurm.conf:3: invalid text "nonsense here", expected Key=Value`},
		{"NodeName=n CPUs=many", "slurm.conf:1: invalid CPUs=many, expected a number from 1 to 65536"},
		{"NodeName=n[1-2]\nNodeName=n2", "slurm.conf:2: node n2 is defined already (slurm.conf:1)"},
		{"NodeName=n[1-", "slurm.conf:1: Invalid hostlist: n[1-"},
		{"NodeName=a\nPartitionName=p Nodes=a,b", "slurm.conf:2: Nodes: there is no node b"},
		{"NodeName=a\nPartitionName=P Nodes=a\nPartitionName=P Nodes=a", "slurm.conf:3: partition P is defined already (slurm.conf:2)"},
		{"PartitionName=p MaxTime=soon", "slurm.conf:1: invalid MaxTime=soon, expected a time such as 90, 1:30:00 or 2-0, or UNLIMITED"},
		{"PropagateResourceLimits=NOFILE,foo", "slurm.conf:1: invalid PropagateResourceLimits=NOFILE,foo, expected ALL, NONE or names of resource limits"},
		{"KillWait=-1", "slurm.conf:1: invalid KillWait=-1, expected a number from 0 to 2147483647"},
		{"DownNodes=x", "slurm.conf:1: DownNodes: there is no node x"},
		{"include missing.conf", "slurm.conf:1: open missing.conf: file does not exist"},
		{"include slurm.conf", "files include one another"},
	} {
		_, err := Parse("slurm.conf", files(c.text))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Parse("slurm.conf", files("include missing.conf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/reference.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(
		"NodeName=DEFAULT CPUs=1\nNodeName=a Gres=:,x:\nNodeSet=s Nodes=a\nPartitionName=p Nodes=s\nDownNodes=a\\\n#\\#",
	)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("slurm.conf", files(text))
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil {
			return
		}
		for _, p := range c.Partitions {
			if p.Name == "" || p.Spec.Nodes == "" {
				t.Fatalf("partition %+v", p)
			}
		}
		for _, n := range c.Nodes {
			if n.CPUs < 1 || n.Sockets*n.CoresPerSocket*n.ThreadsPerCore < 1 {
				t.Fatalf("node %+v", n)
			}
		}
	})
}

// TestIncludesNamedByTheCluster: %c in the name of an included file.
func TestIncludesNamedByTheCluster(t *testing.T) {
	c, err := Parse(
		"slurm.conf",
		files("ClusterName=odd\nInclude %c/nodes\n", "odd/nodes", "include %c.more", "odd/odd.more", "NodeName=n"),
	)
	if err != nil || len(c.Nodes) != 1 {
		t.Errorf("%+v %v", c, err)
	}
}
