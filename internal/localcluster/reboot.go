package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// rebootDir returns the directory in which a file with the name of a node makes it restart.
func rebootDir(state string) string { return filepath.Join(state, "reboot") }

// rebootProgram returns the path of the program that scontrol reboot runs on a local cluster.
func rebootProgram(state string) string { return filepath.Join(state, "reboot-nodes") }

const rebootScript = `#!/bin/sh
# Restarts the nodes of the list, in which commas separate names.
IFS=,
for node in $1; do
	: > '%s/'"$node" || exit 1
done
`

// writeRebootProgram writes the program that restarts nodes.
func writeRebootProgram(state string) error {
	dir := rebootDir(state)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.WriteFile(rebootProgram(state), fmt.Appendf(nil, rebootScript, dir), 0o700)
}
