package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// scriptPool is a pool whose nodes run scripts.
const scriptPool = `
- metadata: {name: fine}
  spec:
    nodes: k[1-3]
    resources: {cpu: "2", memory: 1Gi}
    features: [fine]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 120
    suspendTimeoutSeconds: 2
    suspendTimeSeconds: 4
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
`

// TestKarpenterScripts runs scripts on nodes that Karpenter has launched: its KWOK provider
// creates the Node objects, and the pods on them run as processes of this machine.
func TestKarpenterScripts(t *testing.T) {
	k := newKarpenterCluster(t)
	kill := k.startKarpenter()
	k.serveNodes()
	k.createPools(scriptPool)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a script on two nodes", k.scriptOnTwoNodes},
		{"an interactive command", k.interactiveCommand},
		{"a node that is lost", k.lostNodeWithScript},
		{"Karpenter is killed", func(t *testing.T) { k.karpenterIsKilled(t, kill) }},
	} {
		t.Run(sub.name, sub.run)
	}
}

// script writes a batch script beside the cluster's directory, and returns its path.
func (k *cloudCluster) script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(k.state), name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// outputOf waits until the file of a job has the text, and returns its lines without order.
func outputOf(t *testing.T, path, until string) []string {
	t.Helper()
	var lines []string
	eventually.Succeeds(t, path+" contains "+until, func() error {
		data, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(data), until) {
			err = fmt.Errorf("it has\n%s", data)
		}
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
		return err
	})
	slices.Sort(lines)
	return lines
}

// twoNodes says where it runs, waits for the file that its argument names, and fails.
const twoNodes = `#!/bin/sh
#SBATCH -N2 -C fine --job-name two
echo "script: $(hostname) $SLURMD_NODENAME $SLURM_JOB_NODELIST $SLURM_SUBMIT_HOST"
srun -l sh -c 'echo "$(hostname) $SLURMD_NODENAME $SLURM_NODEID $SLURM_NODELIST"'
srun -N1 -n1 -w k2 sh -c 'echo "second: $(hostname)"; exit 5'
echo "step: $?"
until [ -e "$1" ]; do sleep 0.2; done
exit 3
`

// scriptOnTwoNodes: the script and its steps run on the nodes that Karpenter has named, and see
// the names of the pool, as users do.
func (k *cloudCluster) scriptOnTwoNodes(t *testing.T) {
	dir := filepath.Dir(k.state)
	proceed := filepath.Join(dir, "proceed")
	id := k.succeed(t, "sbatch", "--parsable", "-o", filepath.Join(dir, "%x-%N-%j.out"),
		k.script(t, "two.sh", twoNodes), proceed)
	out := filepath.Join(dir, "two-k1-"+id+".out")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0: k1 k1 0 k[1-2]", "1: k2 k2 1 k[1-2]", "script: k1 k1 k[1-2] " + host, "second: k2", "step: 5",
	}
	if lines := outputOf(t, out, "step: "); !hasLines(lines, want) {
		t.Errorf("the output is\n%s", strings.Join(lines, "\n"))
	}

	if on := k.bound(id); len(on) != 2 || !strings.HasPrefix(on[0], "kwok-k") || !strings.HasPrefix(on[1], "kwok-k") {
		t.Errorf("the pods are bound to %v", on)
	}
	if out := k.succeed(t, "sinfo", "-h", "-N", "-n", "k[1-3]", "-o", "%N %t"); out != "k1 mix\nk2 mix\nk3 idle~" {
		t.Errorf("sinfo shows %q", out)
	}
	if out := k.succeed(t, "squeue", "-h", "-w", "k2", "-o", "%i %T %N %B"); out != id+" RUNNING k[1-2] k1" {
		t.Errorf("squeue -w k2 shows %q", out)
	}
	k.shows(t, "NodeName=k1 ", "scontrol", "show", "node", "k1")
	k.shows(t, "Extra=Kubernetes node "+k.objectOf(t, "k1"), "scontrol", "show", "node", "k1")
	k.shows(t, "BatchHost=k1", "scontrol", "show", "job", id)

	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.shows(t, "FAILED|3:0|k[1-2]", "sacct", "-n", "-X", "-P", "-j", id, "-o", "State,ExitCode,NodeList")
	k.shows(t, id+".1|FAILED|5:0|k2", "sacct", "-n", "-P", "-j", id, "-o", "JobID,State,ExitCode,NodeList")
	k.noneAreLeft(t)
}

// hasLines reports whether the lines, sorted, are those wanted, apart from messages of the
// commands.
func hasLines(lines, want []string) bool {
	return slices.Equal(slices.DeleteFunc(slices.Clone(lines), func(s string) bool {
		return strings.HasPrefix(s, "srun: ")
	}), want)
}

// objectOf returns the name of the Node object of a node of a pool.
func (k *cloudCluster) objectOf(t *testing.T, name string) string {
	t.Helper()
	for _, n := range k.nodes() {
		if n.Annotations["berth.hpc/node-name"] == name {
			return n.Name
		}
	}
	t.Fatalf("there is no Node object for %s", name)
	return ""
}

func (k *cloudCluster) noneAreLeft(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the nodes go when they are idle", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
	k.shows(t, "k1 idle~\nk2 idle~\nk3 idle~", "sinfo", "-h", "-N", "-n", "k[1-3]", "-o", "%N %t")
}

// interactiveCommand: srun outside of a job waits for its nodes, and returns the exit code.
func (k *cloudCluster) interactiveCommand(t *testing.T) {
	code, out, errs := k.run("srun", "-N2", "-C", "fine", "-w", "k[2-3]", "sh", "-c",
		`echo "$(hostname) $SLURMD_NODENAME"; exit 7`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if code != 7 || !slices.Equal(lines, []string{"k2 k2", "k3 k3"}) {
		t.Errorf("srun: exit %d, output %q, messages %q", code, out, errs)
	}
	k.noneAreLeft(t)
}

// lostNodeWithScript: the NodeClaim of a node is deleted while a script runs on it, as when a spot
// instance is taken away. The script runs again on another node, from its beginning.
func (k *cloudCluster) lostNodeWithScript(t *testing.T) {
	dir := filepath.Dir(k.state)
	proceed := filepath.Join(dir, "proceed-again")
	id := k.succeed(t, "sbatch", "--parsable", "--requeue", "-C", "fine", "--open-mode", "append",
		"-o", filepath.Join(dir, "lost.out"), "--wrap",
		`echo "run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME"; until [ -e `+proceed+` ]; do sleep 0.2; done`)
	outputOf(t, filepath.Join(dir, "lost.out"), "run 0 on k1\n")
	first := k.objectOf(t, "k1")
	k.request(t, "DELETE", "/apis/karpenter.sh/v1/nodeclaims/k1", nil, nil)
	outputOf(t, filepath.Join(dir, "lost.out"), "run 1 on k")
	if on := k.bound(id); slices.Contains(on, first) {
		t.Errorf("the job is on %v", on)
	}
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.shows(t, "COMPLETED|0:0", "sacct", "-n", "-X", "-P", "-j", id, "-o", "State,ExitCode")
	k.noneAreLeft(t)
}

// karpenterIsKilled: the nodes are requested while Karpenter does not run, and it dies again while the
// script runs. The script does not notice, and the nodes go when Karpenter is back.
func (k *cloudCluster) karpenterIsKilled(t *testing.T, kill func()) {
	kill()
	dir := filepath.Dir(k.state)
	proceed, out := filepath.Join(dir, "proceed-after-all"), filepath.Join(dir, "killed.out")
	id := k.succeed(t, "sbatch", "--parsable", "-N2", "-C", "fine", "--no-requeue", "-o", out, "--wrap",
		`srun -l hostname; until [ -e `+proceed+` ]; do sleep 0.2; done; srun -l hostname`)
	eventually.Holds(t, "the nodes are requested", func() bool { return k.claims() == "k1 k2" })
	kill = k.startKarpenter()
	outputOf(t, out, "1: k2\n")
	kill()
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.shows(t, "COMPLETED|0:0|k[1-2]", "sacct", "-n", "-X", "-P", "-j", id, "-o", "State,ExitCode,NodeList")
	if lines := outputOf(t, out, "0: k1\n"); !slices.Equal(lines, []string{"0: k1", "0: k1", "1: k2", "1: k2"}) {
		t.Errorf("the output is\n%s", strings.Join(lines, "\n"))
	}
	k.shows(t, "idle%\nidle%", "sinfo", "-h", "-N", "-n", "k[1-2]", "-o", "%t")
	k.startKarpenter()
	k.noneAreLeft(t)
}
