package slurmconf_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmconf"
)

func TestParseDump(t *testing.T) {
	d, err := slurmconf.ParseDump("dump", []byte(`# a comment
Cluster - 'ref':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'science':Description='a: colon':Organization='x':Fairshare=3:GrpTRES=cpu=8,mem=4G:MaxJobs=5
Parent - 'science'
Account - 'deep':Nonsense=1
User - 'anna':DefaultAccount='science':Fairshare=1:Coordinator='science'
Parent - 'deep'
User - 'anna':DefaultAccount='science':MaxSubmitJobs=7:QOS='normal,high'
`))
	if err != nil {
		t.Fatal(err)
	}
	science := d.Accounts[0].Spec
	if d.Cluster != "ref" || science.Description != "a: colon" || science.Limits.Share != 3 ||
		science.Limits.GrpTRES["mem"] != 4096 ||
		science.Limits.MaxJobs != 5 ||
		strings.Join(science.Coordinators, ",") != "anna" ||
		d.Accounts[1].Spec.Parent != "science" {
		t.Errorf("%+v", d)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Key != "Nonsense" || d.Warnings[0].Line != 7 {
		t.Errorf("%+v", d.Warnings)
	}
	anna := d.Users[1].Spec
	if strings.Join(anna.Accounts, ",") != "science,deep" || anna.DefaultAccount != "science" ||
		len(anna.Associations) != 1 ||
		anna.Associations[0].Account != "deep" ||
		anna.Associations[0].Limits.MaxSubmitJobs != 7 ||
		len(anna.Associations[0].QOS) != 2 {
		t.Errorf("%+v", anna)
	}
	for name, bad := range map[string]string{"quote": "User - 'x", "kind": "Foo - 'x'", "value": "User - 'x':y", "number": "User - 'x':MaxJobs=y", "nothing": "hello", "name": "Account - ''",
		"parent": "Parent - 'nosuch'", "tres": "Account - 'a':GrpTRES=cpu", "mem": "Account - 'a':GrpTRES=mem=4GM"} {
		if _, err := slurmconf.ParseDump("dump", []byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnusualDumps: quotes within values, blank values, limits that are none, and
// lines in another order than sacctmgr writes them.
func TestUnusualDumps(t *testing.T) {
	d, err := slurmconf.ParseDump("dump", []byte(`Cluster - "ref":Fairshare=1:QOS='normal':MaxJobs=4
Parent - root
Account - 'a':Description='it's: here':Organization="x":QOS='':MaxJobs=-1:GrpTRES=cpu=-1,gres/gpu:a100=2,mem=2T:MaxSubmitJobs=
Account - 'a':MaxJobs=9
Parent - 'a'
User - 'anna' : DefaultAccount='a' : Coordinator='b,c'::QOS=',low,':GrpTRES=
Account - b
Parent - 'root'
User - 'anna':MaxJobs=3
User - 'Ben_C':DefaultAccount='a'
`))
	if err != nil {
		t.Fatal(err)
	}
	a := d.Accounts[0].Spec
	if a.Description != "it's: here" || a.Organization != "x" || len(a.QOS) != 0 || a.Limits.MaxJobs != 0 ||
		!maps.Equal(a.Limits.GrpTRES, map[string]int64{"gres/gpu:a100": 2, "mem": 2 << 20}) {
		t.Errorf("%+v", a)
	}
	if len(d.Accounts) != 2 || !slices.Equal(d.Accounts[1].Spec.Coordinators, []string{"anna"}) {
		t.Errorf("%+v", d.Accounts)
	}
	if len(d.Users) != 1 || d.Users[0].Spec.DefaultAccount != "a" ||
		!slices.Equal(d.Users[0].Spec.Associations[0].QOS, []string{"low"}) {
		t.Errorf("%+v", d.Users)
	}
	var output []string
	for _, w := range d.Warnings {
		output = append(output, strconv.Itoa(w.Line)+" "+w.Key)
	}
	if want := []string{"1 MaxJobs", "4 a", "9 anna", "10 Ben_C", "6 Coordinator"}; !slices.Equal(output, want) {
		t.Errorf("warnings %v, want %v", output, want)
	}
}

func TestParseGRES(t *testing.T) {
	c := &slurmconf.Config{
		Nodes: []slurmconf.Node{
			{Name: "n1", GRES: []slurmconf.GRES{{Name: "gpu", Type: "tesla", Count: 2}}},
			{Name: "n2"},
		},
	}
	read := func(texts ...string) func(string) ([]byte, error) {
		return func(name string) ([]byte, error) {
			if i := slices.Index([]string{"d/gres.conf", "d/ref/more"}, name); i >= 0 && i < len(texts) {
				return []byte(texts[i]), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	c.Cluster.ClusterName = "ref"
	err := slurmconf.ParseGRES(
		"d/gres.conf",
		read(
			"AutoDetect=nvml\nNodeName=n1 Name=gpu Type=tesla File=/dev/nvidia[0-1] Cores=0-3,\\\n4-7 # two\nInclude %c/more\n",
			"NodeName=n[2-3] Name=gpu Count=4\n",
		),
		c,
	)
	if err != nil {
		t.Fatal(err)
	}
	var output []string
	for _, w := range c.Warnings {
		output = append(output, w.Text)
	}
	all := strings.Join(output, "\n")
	for _, want := range []string{"device plugins detect", "node n3 is not in slurm.conf", "node n2 has 4 of gpu in gres.conf and 0 in slurm.conf"} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no warning %q:\n%s", want, all)
		}
	}
	if len(output) != 3 {
		t.Error(all)
	}
	for _, bad := range []string{"Name", "Name=gpu Count=x", "NodeName=n[1 Name=gpu", "Include nosuch", "include gres.conf"} {
		if err := slurmconf.ParseGRES("d/gres.conf", read(bad), c); !errors.As(err, new(*slurmconf.Error)) {
			t.Errorf("%q: no error", bad)
		}
	}
}
