package importer

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/stdio"
)

var files = map[string]string{
	"/s/slurm.conf": "ClusterName=ref\nSlurmctldHost=h\nPrologSlurmctld=/x\nNodeName=n[1-2] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=1000 Feature=fast,red\n" +
		"PartitionName=debug Nodes=n[1-2] Default=YES MaxTime=30\n",
	"/s/dump":   "Cluster - 'ref'\nParent - 'root'\nAccount - 'science':Fairshare=2\nAccount - 'Bio_Lab'\nParent - 'science'\nUser - 'anna':DefaultAccount='science'\nUser - 'gone':DefaultAccount='science'\n",
	"/s/passwd": "anna:x:1001:100:Anna:/home/anna:/bin/zsh\n",
	"/s/group":  "users:x:100:\nlab:x:200:anna,ben\n",
}

func imported(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	p := &stdio.Process{
		Streams:   stdio.Streams{Out: &o, Err: &e},
		Now:       time.Now,
		LookupEnv: func(string) (string, bool) { return "", false },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
	c := Commands(p)[0]
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.Execute()
	return o.String(), e.String(), err
}

func TestImport(t *testing.T) {
	out, errs, err := imported(t, "/s/slurm.conf", "--dump", "/s/dump", "--passwd", "/s/passwd", "--group", "/s/group")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{}
	var accounts []string
	for text := range strings.SplitSeq(out, "---\n") {
		var o struct {
			Kind     string
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		objects[o.Kind+" "+o.Metadata.Name] = text
		if o.Kind == "Account" {
			accounts = append(accounts, v1alpha1.UserName(o.Metadata.Name, o.Metadata.Annotations))
		}
	}
	if want := []string{"science", "Bio_Lab"}; !slices.Equal(accounts, want) {
		t.Errorf("accounts %q, want %q", accounts, want)
	}
	for _, want := range []string{"Cluster berth", "Partition debug", "Node n1", "Node n2", "Account science", "Namespace user-anna", "User anna"} {
		if objects[want] == "" {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, ": null\n") { // the API server refuses it where an object belongs
		t.Errorf("members without a value in\n%s", out)
	}
	var u v1alpha1.User
	if err := yaml.UnmarshalStrict([]byte(objects["User anna"]), &u); err != nil {
		t.Fatal(err)
	}
	if u.Spec.UID != 1001 || u.Spec.Shell != "/bin/zsh" || len(u.Spec.Groups) != 2 || u.Spec.Accounts[0] != "science" {
		t.Errorf("%+v", u.Spec)
	}
	var p v1alpha1.Partition
	if err := yaml.UnmarshalStrict(
		[]byte(objects["Partition debug"]),
		&p,
	); err != nil || p.Spec.MaxTime != 30 ||
		!p.Spec.Default {
		t.Errorf("%+v %v", p.Spec, err)
	}
	for _, want := range []string{`berth.hpc/sockets: "2"`, `feature.berth.hpc/fast: "true"`} {
		if !strings.Contains(objects["Node n1"], want) {
			t.Errorf("%s is missing in\n%s", want, objects["Node n1"])
		}
	}
	for _, want := range []string{"PrologSlurmctld", "gone: user not found", "1 parameters of Slurm's daemons"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in:\n%s", want, errs)
		}
	}
}

// TestImportIsAllOrNothing: nothing is printed if a file cannot be read.
func TestImportIsAllOrNothing(t *testing.T) {
	for _, args := range [][]string{{"/s/nosuch"}, {"/s/slurm.conf", "--dump", "/s/nosuch"}, {"/s/slurm.conf", "--gres", "/s/nosuch"}, {"/s/slurm.conf", "--dump", "/s/passwd"}} {
		out, _, err := imported(t, args...)
		if err == nil || out != "" {
			t.Errorf("%q: %v %q", args, err, out)
		}
	}
}

// TestValues: the chart's values have the same Cluster and Partitions, and no users.
func TestValues(t *testing.T) {
	out, _, err := imported(t, "/s/slurm.conf", "--values")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Cluster    v1alpha1.ClusterSpec
		Partitions map[string]v1alpha1.PartitionSpec
	}
	if err := yaml.UnmarshalStrict([]byte(out), &values); err != nil {
		t.Fatal(err, out)
	}
	if p := values.Partitions["debug"]; len(values.Partitions) != 1 || values.Cluster.ClusterName != "ref" ||
		p.Nodes != "n[1-2]" ||
		!p.Default ||
		p.MaxTime == 0 {
		t.Errorf("the values are\n%s", out)
	}
}

// The topology.conf next to slurm.conf is read if Slurm reads it, or the one of --topology.
func TestTopology(t *testing.T) {
	files["/t/slurm.conf"] = "TopologyPlugin=topology/tree\nNodeName=n[1-2]\n"
	files["/t/topology.conf"] = "SwitchName=s0 Nodes=n[1-3]\n"
	files["/u/topology.conf"] = "SwitchName=u0 Nodes=n[1-2]\n"
	for args, want := range map[string]string{
		"/t/slurm.conf":                                "name: s0",
		"/t/slurm.conf --values":                       "name: s0",
		"/s/slurm.conf --topology /u/topology.conf":    "name: u0",
		"/t/slurm.conf --topology /u/topology.conf":    "name: u0",
		"/s/slurm.conf --topology /none/topology.conf": "",
	} {
		out, errs, err := imported(t, strings.Fields(args)...)
		if (err != nil) != (want == "") || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		if strings.HasSuffix(args, "/t/slurm.conf") && !strings.Contains(errs, "the cluster has no nodes n3") {
			t.Errorf("%s: %s", args, errs)
		}
	}
}
