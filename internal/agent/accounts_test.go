package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrepareWritesAccounts checks that the job's user precedes the lines of the image,
// which may have the same uid.
func TestPrepareWritesAccounts(t *testing.T) {
	to := t.TempDir()
	for range 2 { // a kubelet may repeat it
		var out bytes.Buffer
		if code := prepare(
			[]string{"-names=" + to, "-user=ann:4711:4712:/home/ann:/bin/zsh", "-group=chem:70"},
			&out,
		); code != 0 ||
			out.Len() > 0 {
			t.Fatalf("%d: %s", code, &out)
		}
	}
	for file, want := range map[string]string{"passwd": "ann:x:4711:4712::/home/ann:/bin/zsh\n", "group": "chem:x:70:\nann:x:4712:\n"} {
		image, err := os.ReadFile("/etc/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(got) != want+string(image) {
			t.Errorf("%s: %.200q, %v", file, got, err)
		}
	}
	if code := prepare([]string{"-names=" + to, "-user=ann"}, &bytes.Buffer{}); code == 0 {
		t.Error("a user without a uid was accepted")
	}
}

func TestAccountsOfBareImages(t *testing.T) {
	n := accountFiles{from: t.TempDir(), to: t.TempDir(), user: "ann:4711:0:/home/ann:/bin/sh"}
	if err := n.write(); err != nil {
		t.Fatal(err)
	}
	passwd, err := os.ReadFile(filepath.Join(n.to, "passwd"))
	if err != nil || !strings.HasPrefix(string(passwd), "ann:x:4711:0::/home/ann:/bin/sh\nroot:x:0:") {
		t.Errorf("%s, %v", passwd, err)
	}
	group, err := os.ReadFile(filepath.Join(n.to, "group"))
	if err != nil || !strings.HasPrefix(string(group), "root:x:0:") {
		t.Errorf("%s, %v: the name of the existing group is not used", group, err)
	}
}
