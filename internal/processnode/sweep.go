package processnode

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
)

// Sweep removes the leftovers of a killed Run with this Config.Dir, and of its network with
// this key: control groups, shared memory, the bridge. Neither may be in use. It does not
// remove directories below dir.
func Sweep(dir, key string) error {
	name := ownerName(dir)
	if IsRoot() {
		cgroups.Sweep(name)
	}
	return errors.Join(os.RemoveAll(sharedDir(name)), podnet.Sweep(podnet.Config{Key: key, Root: IsRoot()}))
}

// owner returns the identifier of the process nodes with the given Config.Dir.
func owner(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:4])
}

// ownerName returns the prefix of the names of objects outside dir.
func ownerName(dir string) string { return "berth-" + owner(dir) }

// sharedDir returns the directory of the pods' shared memory.
func sharedDir(name string) string {
	return filepath.Join("/dev/shm", fmt.Sprintf("%s-%d", name, os.Geteuid()))
}
