package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Users that exist only in the cluster get names on the system; lines of the image do
// not change.
func TestNamesAreWritten(t *testing.T) {
	dir := t.TempDir()
	const root, wheel = "root:x:0:0:root:/root:/bin/bash\nold:x:7:7::/:/bin/sh", "root:x:0:\nstaff:x:50:\n"
	for file, text := range map[string]string{"passwd": root, "group": wheel} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var output []string
	n := names{dir: dir, warn: func(text string) { output = append(output, text) }}
	want := func(passwd, group string) {
		t.Helper()
		for file, text := range map[string]string{"passwd": root + "\n" + passwd, "group": wheel + group} {
			got, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || string(got) != text {
				t.Errorf("%s, %v:\n%swant:\n%s", file, err, got, text)
			}
		}
	}
	ann := &auth.User{Name: "ann", UID: 1001, GID: 1001, Home: "/home/ann", Shell: "/bin/bash"}
	for range 2 {
		n.add(ann)
		want("ann:x:1001:1001:Berth:/home/ann:/bin/bash\n", "ann:x:1001:\n")
	}
	ann.Shell = "/bin/zsh" // a change of this program's own line
	n.add(ann)
	want("ann:x:1001:1001:Berth:/home/ann:/bin/zsh\n", "ann:x:1001:\n")
	n.add(&auth.User{Name: "root", UID: 1002, GID: 50, Home: "/", Shell: "/bin/sh"})  // the image's name
	n.add(&auth.User{Name: "other", UID: 7, GID: 50, Home: "/", Shell: "/bin/sh"})    // the image's number
	n.add(&auth.User{Name: "eve", UID: 1003, GID: 50, Home: "/:/bin/sh\nx:x:0:0::/"}) // no line
	want("ann:x:1001:1001:Berth:/home/ann:/bin/zsh\n", "ann:x:1001:\n")
	if len(output) != 1 {
		t.Errorf("%q", output)
	}
	info, err := os.Stat(filepath.Join(dir, "passwd"))
	left, _ := filepath.Glob(filepath.Join(dir, "*.berth-*"))
	if err != nil || info.Mode() != 0o644 || len(left) > 0 {
		t.Errorf("%v, %v, %v", info.Mode(), err, left)
	}
}

// In a user's pod the user comes first, even if the image has another user with the
// uid.
func TestNamesOfPods(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	const passwd, group = "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n", "root:x:0:\nubuntu:x:1000:\n"
	for file, text := range map[string]string{"passwd": passwd, "group": group} {
		if err := os.WriteFile(filepath.Join(from, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ann := &auth.User{Name: "ann", UID: 1000, GID: 2000, Groups: []int{2000, 70, 71}, GroupNames: map[int]string{70: "chem", 71: "x:y"}, Home: "/home/ann", Shell: "/bin/zsh"}
	for _, c := range []struct{ from, passwd, group string }{{from, passwd, group}, {t.TempDir(), "", ""}} { // of an image without such files too
		if err := podNames(ann, c.from, to); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"passwd": "ann:x:1000:2000::/home/ann:/bin/zsh\n" + c.passwd, "group": "chem:x:70:\nann:x:2000:\n" + c.group} {
			got, err := os.ReadFile(filepath.Join(to, file))
			if err != nil || string(got) != want {
				t.Errorf("%s, %v:\n%swant:\n%s", file, err, got, want)
			}
		}
	}
}
