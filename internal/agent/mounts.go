package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// The kubelet resolves the directories of --container-mounts as root when it starts
// the job's container. Until then the user can replace a directory by a link to a
// directory that the user must not read. Therefore the init container, which has the
// user's rights, records the identities of the directories that it sees (recordMounts),
// and the agent compares the mounts with the record before it runs any program of the
// user (checkMounts).

// fileID identifies a file or directory on this node while it exists.
type fileID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// identify returns the identity of path, as seen with the rights of this process.
func identify(path string) (fileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("%s: no inode", path)
	}
	return fileID{st.Dev, st.Ino}, nil
}

// recordMounts writes the identities of the sources of binds (SOURCE:TARGET), by
// target. A source that the user cannot see is an error: the kubelet would create
// it, as root.
func recordMounts(file string, binds []string) error {
	found := map[string]fileID{}
	var all error
	for _, bind := range binds {
		source, target, _ := strings.Cut(bind, ":")
		r, err := identify(source)
		if err != nil {
			all = errors.Join(all, fmt.Errorf("--container-mounts: %s does not exist", source))
			continue
		}
		found[target] = r
	}
	if all != nil || file == "" {
		return all
	}
	text, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("recording mounts: %w", err)
	}
	return writeFile(strings.NewReader(string(text)), file, 0o444)
}

// maxMountsFile is the maximum size of the record, in bytes.
const maxMountsFile = 1 << 20

// checkMounts compares the mounts with the record in file. A job without mounts of
// its own has no record.
func checkMounts(file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the record of --container-mounts: %w", err)
	}
	if info.Size() > maxMountsFile {
		return fmt.Errorf("the record of --container-mounts has %d bytes, at most %d are allowed",
			info.Size(), maxMountsFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the record of --container-mounts: %w", err)
	}
	var want map[string]fileID
	if err := json.Unmarshal(text, &want); err != nil {
		return fmt.Errorf("the record of --container-mounts: %w", err)
	}
	for target, w := range want {
		got, err := identify(target)
		if err != nil {
			return fmt.Errorf("--container-mounts: %s: %w", target, err)
		}
		if got != w {
			return fmt.Errorf("--container-mounts: "+
				"the directory mounted at %s is not the requested one; it was replaced before the job started", target)
		}
	}
	return nil
}
