package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// cloudDir returns the directory whose files say which nodes in state CLOUD run.
func cloudDir(state string) string { return filepath.Join(state, "cloud") }

// Programs of the pools of a local cluster. A node runs while there is a file with its name.
const (
	resumeProgram = `#!/bin/sh
# Starts the nodes of the host list.
for node in $('%s/scontrol' show hostnames "$1"); do
	: > '%s/'"$node" || exit 1
done
`
	suspendProgram = `#!/bin/sh
# Stops the nodes of the host list.
for node in $('%s/scontrol' show hostnames "$1"); do
	rm -f '%s/'"$node" || exit 1
done
`
)

// configurePools writes the NodePool objects and deletes those that an earlier slurm.conf had,
// and writes the programs that start and stop their nodes.
func configurePools(ctx context.Context, a *api, c Config) error {
	if c.Cluster == nil { // a start without slurm.conf keeps the pools
		return nil
	}
	var have v1alpha1.NodePoolList
	if err := a.do(ctx, "GET", "/apis/"+berthAPI+"/nodepools", "", nil, &have); err != nil {
		return err
	}
	for _, name := range formerPools(c, have.Items) {
		if err := a.do(ctx, "DELETE", "/apis/"+berthAPI+"/nodepools/"+name, "", nil, nil); err != nil {
			return err
		}
	}
	if len(c.NodePools) == 0 {
		return nil
	}
	programs, err := writePrograms(c)
	if err != nil {
		return err
	}
	for _, p := range c.NodePools {
		p.Spec.Program = programs
		o, err := object(berthAPI, "NodePool", &p)
		if err != nil {
			return err
		}
		delete(o.Object, "status")
		if err := a.apply(ctx, o); err != nil {
			return fmt.Errorf("node pool %s: %w", p.Name, err)
		}
	}
	return nil
}

// formerPools returns the names of those pools that came from an earlier slurm.conf and that c no
// longer has. It leaves out pools that were created by other means, such as kubectl: nothing
// but who created them may delete them.
func formerPools(c Config, have []v1alpha1.NodePool) (names []string) {
	for _, p := range have {
		own := p.Spec.Program != nil && p.Spec.Program.Resume == c.resumeProgram()
		if own && !slices.ContainsFunc(c.NodePools, func(w v1alpha1.NodePool) bool { return w.Name == p.Name }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// resumeProgram is the path of the program that starts nodes of pools.
func (c *Config) resumeProgram() string { return filepath.Join(c.StateDir, "resume-nodes") }

func writePrograms(c Config) (*v1alpha1.NodeProgram, error) {
	dir := cloudDir(c.StateDir)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	p := &v1alpha1.NodeProgram{
		Resume: c.resumeProgram(), Suspend: filepath.Join(c.StateDir, "suspend-nodes"),
	}
	for file, text := range map[string]string{p.Resume: resumeProgram, p.Suspend: suspendProgram} {
		if err := os.WriteFile(file, fmt.Appendf(nil, text, c.BinDir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	return p, nil
}
