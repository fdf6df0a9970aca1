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

// A kubelet resolves the folders of --container-mounts as root, when it starts the
// job's container. Until then the user can exchange a folder for a link to what is
// not the user's. So the container before it, which has the user's rights, writes
// down which folders it reaches (recordMounts), and the agent compares them with
// what is mounted before any program of the user's runs (checkMounts).

// reached identifies a file or folder on this node while it exists.
type reached struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// reach follows the path with the rights of this process.
func reach(path string) (reached, error) {
	info, err := os.Stat(path)
	if err != nil {
		return reached{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return reached{}, fmt.Errorf("%s: no inode", path)
	}
	return reached{st.Dev, st.Ino}, nil
}

// recordMounts writes, by target, what the sources of binds (SOURCE:TARGET) are. A
// source that is not there, or not to be seen by the user, is an error: a kubelet
// would make it, as root.
func recordMounts(file string, binds []string) error {
	found := map[string]reached{}
	var all error
	for _, bind := range binds {
		source, target, _ := strings.Cut(bind, ":")
		r, err := reach(source)
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

// maxMountsFile bounds the record.
const maxMountsFile = 1 << 20

// checkMounts compares what is mounted with the record in file; there is none
// where a job has no mounts of its own.
func checkMounts(file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() > maxMountsFile {
		return fmt.Errorf("the record of --container-mounts cannot be read: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the record of --container-mounts: %w", err)
	}
	var want map[string]reached
	if err := json.Unmarshal(text, &want); err != nil {
		return fmt.Errorf("the record of --container-mounts: %w", err)
	}
	for target, w := range want {
		got, err := reach(target)
		if err != nil {
			return fmt.Errorf("--container-mounts: %s: %w", target, err)
		}
		if got != w {
			return fmt.Errorf("--container-mounts: what is mounted at %s is not the folder that was asked for; it was exchanged meanwhile", target)
		}
	}
	return nil
}
