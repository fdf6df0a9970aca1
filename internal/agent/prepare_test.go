package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	hosts, bin := filepath.Join(dir, "hosts"), filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a kubelet may repeat it
		var out bytes.Buffer
		if code := prepare([]string{"-hosts=" + hosts, "-bin=" + bin, "--", dir + ":/x"}, &out); code != 0 ||
			out.Len() > 0 {
			t.Fatalf("%d: %s", code, &out)
		}
	}
	want, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(hosts); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(bin, filepath.Base(self)))
	if err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the copy of this program: %v, %v", info, err)
	}
}

func TestPrepareRefusesMissingDirectories(t *testing.T) {
	var out bytes.Buffer
	gone := filepath.Join(t.TempDir(), "gone")
	if code := prepare([]string{"--", "/:/a", gone + ":/b"}, &out); code != 1 ||
		!strings.Contains(out.String(), "--container-mounts: "+gone+" does not exist") {
		t.Errorf("%d: %s", code, &out)
	}
}
