package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/slurmconf"
)

// maxNodes is the largest number of process nodes on one machine.
const maxNodes = 1000

// imitate sets the nodes, partitions and parameters of the slurm.conf, and reports what
// is ignored.
func (p *program) imitate(c *localcluster.Config) error {
	conf, err := slurmconf.Parse(p.SlurmConf, os.ReadFile)
	if err != nil {
		return err
	}
	if conf.HasTopology() {
		file := filepath.Join(filepath.Dir(p.SlurmConf), "topology.conf")
		if _, err := slurmconf.ParseTopology(file, os.ReadFile, conf); err != nil {
			return err
		}
	}
	switch {
	case len(conf.Nodes) == 0:
		return fmt.Errorf("%s: no NodeName line", p.SlurmConf)
	case len(conf.Nodes) > maxNodes:
		return fmt.Errorf("%s: %d nodes; a local cluster has %d at most", p.SlurmConf, len(conf.Nodes), maxNodes)
	}
	share, err := memoryShare(len(conf.Nodes))
	if err != nil {
		return err
	}
	for _, n := range conf.Nodes {
		c.Nodes = append(c.Nodes, imitation(n, share))
	}
	if err := distinct(c.Nodes); err != nil {
		return fmt.Errorf("%s: %w", p.SlurmConf, err)
	}
	c.Partitions, c.Cluster, c.NodePools = conf.Partitions, &conf.Cluster, conf.NodePools
	for _, line := range notes(conf.Warnings) {
		c.Progress(line)
	}
	return nil
}

// imitation returns a node as slurm.conf describes it; share is the memory in MiB of a
// node without RealMemory.
func imitation(n slurmconf.Node, share int64) localcluster.Node {
	memory := n.RealMemory
	if memory == 0 {
		memory = share
	}
	all := localcluster.Node{
		Name: n.Name, CPUs: int64(n.CPUs), Memory: memory, Disk: n.TmpDisk,
		Sockets: n.Sockets, Cores: n.CoresPerSocket, Threads: n.ThreadsPerCore,
		Features: n.Features, State: n.State, Reason: n.Reason, Weight: n.Weight,
	}
	if all.State == slurmconf.StateCloud {
		all.State, all.Cloud = "", true
	}
	for _, g := range n.GRES {
		all.GRES = append(all.GRES, localcluster.GRES{Name: g.Name, Type: g.Type, Count: g.Count})
	}
	return all
}

// distinct refuses names that Kubernetes could not distinguish.
func distinct(nodes []localcluster.Node) error {
	names := map[string]string{}
	for _, n := range nodes {
		object := n.Object()
		if other, taken := names[object]; taken || object == "" {
			return fmt.Errorf("node %s cannot be told from %q: names differ in upper case or punctuation only", n.Name,
				other)
		}
		names[object] = n.Name
	}
	return nil
}

// notes returns the warnings as lines: one for each parameter, but only one for all that
// concern Slurm's daemons.
func notes(warnings []slurmconf.Warning) []string {
	var lines, ignored []string
	for _, w := range warnings {
		if w.DaemonOnly {
			ignored = append(ignored, fmt.Sprintf("%s (%d)", w.Key, w.Line))
			continue
		}
		lines = append(lines, "warning: "+w.String())
	}
	if len(ignored) > 0 {
		lines = append(lines, "slurm.conf: ignored parameters of Slurm's daemons (line): "+strings.Join(ignored, ", "))
	}
	return lines
}
