package slurmconf

import (
	"strings"
	"testing"
)

func TestNodesInStateCloud(t *testing.T) {
	c := parse(t, `ResumeProgram=/usr/sbin/resume
SuspendProgram=/usr/sbin/suspend
ResumeFailProgram=/usr/sbin/failed
ResumeTimeout=300
SuspendTimeout=60
SuspendTime=600
NodeName=n1 CPUs=4
NodeName=cloud[01-03] Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=2000 TmpDisk=100 Gres=gpu:a100:2 Feature=x,y Weight=5 State=CLOUD
NodeName=cloud[04-05] CPUs=2 State=CLOUD
NodeName=big1 CPUs=64 State=CLOUD
`)
	if len(c.NodePools) != 3 || len(c.Warnings) != 0 {
		t.Fatalf("%+v, warnings %v", c.NodePools, c.Warnings)
	}
	var got []string
	for _, p := range c.NodePools {
		got = append(got, p.Name+" "+p.Spec.Nodes)
	}
	if s := strings.Join(got, "; "); s != "cloud cloud[01-03]; cloud-2 cloud[04-05]; big big1" {
		t.Error(s)
	}
	p := c.NodePools[0].Spec
	gpus := p.Resources["gres.berth.hpc/gpu-a100"]
	if p.Resources.Cpu().Value() != 16 || p.Resources.Memory().Value() != 2000<<20 || gpus.Value() != 2 ||
		p.Resources.StorageEphemeral().Value() != 100<<20 {
		t.Errorf("resources %v", p.Resources)
	}
	if p.Sockets != 2 || p.CoresPerSocket != 4 || p.ThreadsPerCore != 2 || p.Weight != 5 || len(p.Features) != 2 {
		t.Errorf("%+v", p)
	}
	if p.ResumeTimeout != 300 || p.SuspendTimeout != 60 || *p.SuspendTime != 600 ||
		p.Program.Resume != "/usr/sbin/resume" || p.Program.Suspend != "/usr/sbin/suspend" ||
		p.Program.ResumeFail != "/usr/sbin/failed" {
		t.Errorf("%+v %+v", p, p.Program)
	}
	c = parse(t, "SuspendTime=INFINITE\nNodeName=a[1-2] CPUs=1 State=CLOUD\n")
	if p := c.NodePools[0].Spec; p.SuspendTime != nil || p.Program != nil || len(c.Warnings) != 1 ||
		!strings.Contains(c.Warnings[0].Text, "need ResumeProgram and SuspendProgram") {
		t.Errorf("%+v, warnings %v", p, c.Warnings)
	}
	if c = parse(t, "NodeName=n1 CPUs=1\nSuspendTime=60\n"); len(c.NodePools) != 0 {
		t.Errorf("%+v", c.NodePools)
	}
}

// Slurm runs RebootProgram on the nodes, unless a parameter makes slurmctld run it, as the
// scheduler does.
func TestRebootProgram(t *testing.T) {
	for _, x := range []struct {
		conf, program, warning string
	}{
		{"RebootProgram=/sbin/reboot\nResumeTimeout=300\n", "",
			"runs on the nodes in Slurm; set rebootProgram of the Cluster, which runs in the scheduler"},
		{"RebootProgram=/etc/ipmi\nSlurmctldParameters=idle_on_node_suspend,reboot_from_controller\nResumeTimeout=300\n",
			"/etc/ipmi", ""},
	} {
		c := parse(t, x.conf+"NodeName=n1 CPUs=1\n")
		warning := ""
		for _, w := range c.Warnings {
			if w.Key == "RebootProgram" {
				warning = w.Text
			}
		}
		if c.Cluster.RebootProgram != x.program || c.Cluster.ResumeTimeout != 300 || warning != x.warning {
			t.Errorf("%s: program %q, timeout %d, warning %q", x.conf, c.Cluster.RebootProgram, c.Cluster.ResumeTimeout, warning)
		}
	}
}
