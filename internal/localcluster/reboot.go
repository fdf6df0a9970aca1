package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// rebootDir returns the directory in which a file with the name of a node makes it restart.
func rebootDir(state string) string { return filepath.Join(state, "reboot") }

// rebootProgram is the program that scontrol reboot runs on a local cluster.
const rebootProgram = `#!/bin/sh
# Restarts the nodes of the list, in which commas separate names.
IFS=,
for node in $1; do
	: > '%s/'"$node" || exit 1
done
`

// configureReboots writes the program that restarts nodes and its path in the Cluster, whose
// other fields it does not own.
func configureReboots(ctx context.Context, a *api, c Config) error {
	dir, program := rebootDir(c.StateDir), filepath.Join(c.StateDir, "reboot-nodes")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if err := os.WriteFile(program, fmt.Appendf(nil, rebootProgram, dir), 0o700); err != nil {
		return err
	}
	o, err := object(berthAPI, "Cluster", &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName},
		Spec:       v1alpha1.ClusterSpec{RebootProgram: program},
	})
	if err != nil {
		return err
	}
	return a.applyAs(ctx, fieldManager+"-reboot", o)
}
