package slurmconf_test

import (
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
	if d.Cluster != "ref" || science.Description != "a: colon" || science.Limits.Share != 3 || science.Limits.GrpTRES["mem"] != 4096 ||
		science.Limits.MaxJobs != 5 || strings.Join(science.Coordinators, ",") != "anna" || d.Accounts[1].Spec.Parent != "science" {
		t.Errorf("%+v", d)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Key != "Nonsense" || d.Warnings[0].Line != 7 {
		t.Errorf("%+v", d.Warnings)
	}
	anna := d.Users[1].Spec
	if strings.Join(anna.Accounts, ",") != "science,deep" || anna.DefaultAccount != "science" || len(anna.Associations) != 1 ||
		anna.Associations[0].Account != "deep" || anna.Associations[0].Limits.MaxSubmitJobs != 7 || len(anna.Associations[0].QOS) != 2 {
		t.Errorf("%+v", anna)
	}
	for name, bad := range map[string]string{"quote": "User - 'x", "kind": "Foo - 'x'", "value": "User - 'x':y", "number": "User - 'x':MaxJobs=y", "nothing": "hello"} {
		if _, err := slurmconf.ParseDump("dump", []byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseGRES(t *testing.T) {
	c := &slurmconf.Config{Nodes: []slurmconf.Node{{Name: "n1", GRES: []slurmconf.GRES{{Name: "gpu", Type: "tesla", Count: 2}}}, {Name: "n2"}}}
	err := slurmconf.ParseGRES("gres.conf", []byte("AutoDetect=nvml\nNodeName=n1 Name=gpu Type=tesla File=/dev/nvidia[0-1] Cores=0-3,\\\n4-7 # two\nNodeName=n[2-3] Name=gpu Count=4\n"), c)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, w := range c.Warnings {
		said = append(said, w.Text)
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"device plugins find", "node n3 is not in slurm.conf", "node n2 has 4 of gpu here and 0 in slurm.conf"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said:\n%s", want, all)
		}
	}
	if len(said) != 3 {
		t.Error(all)
	}
	for _, bad := range []string{"Name", "Name=gpu Count=x", "NodeName=n[1 Name=gpu"} {
		if err := slurmconf.ParseGRES("gres.conf", []byte(bad), c); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
