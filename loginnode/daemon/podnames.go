package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// namesMain writes the passwd(5) and group(5) of a user's pod into a directory.
func namesMain(dir string, errs io.Writer) int {
	p, err := readPodFile(os.Getenv(EnvPod))
	if err == nil {
		err = podNames(&p.User, "/etc", dir)
	}
	if err != nil {
		fmt.Fprintln(errs, "loginnode: error:", err)
		return 1
	}
	return 0
}

// podNames writes the image's passwd and group with the user's lines at the beginning.
// If the image has another user with the uid (many have one with 1000), the user's line
// counts, because the pod has no other users.
func podNames(u *auth.User, from, to string) error {
	uid, gid := strconv.Itoa(u.UID), strconv.Itoa(u.GID)
	passwd, err1 := image(filepath.Join(from, "passwd"))
	group, err2 := image(filepath.Join(from, "group"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	lines := groupsOf(u)
	if u.GroupNames[u.GID] == "" && !strings.Contains(group, ":"+gid+":") {
		lines = append(lines, []string{u.Name, "x", gid, ""})
	}
	passwd = inFront([][]string{{u.Name, "x", uid, gid, "", u.Home, u.Shell}}, passwd)
	return errors.Join(
		replace(filepath.Join(to, "passwd"), passwd, 0o644),
		replace(filepath.Join(to, "group"), inFront(lines, group), 0o644),
	)
}

// image returns the contents of a file of the image, or "" if it does not exist.
func image(file string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// inFront puts lines before others. A malformed line is skipped.
func inFront(lines [][]string, others string) string {
	var out strings.Builder
	for _, f := range lines {
		if text := strings.Join(
			f,
			":",
		); strings.Count(text, ":") == len(f)-1 &&
			!strings.ContainsAny(text, "\n\r\x00") {
			out.WriteString(text + "\n")
		}
	}
	return out.String() + others
}
