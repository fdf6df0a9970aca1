package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// Users of other sources than the cluster are none of its business.
func TestRevocation(t *testing.T) {
	connected := &Connected{Revoked: func(name string, uid int) bool { return name == "ann" && uid == 1000 }}
	ann := &auth.User{Name: "ann", UID: 1000, Source: userSource("ann")}
	files := &auth.User{Name: "ann", UID: 1000, Source: "/etc/passwd"}
	adopted := &auth.User{Name: "ann", UID: 1000}
	for _, tt := range []struct {
		sources []UserSource
		want    []bool // of ann, files and adopted
	}{
		{[]UserSource{{Cluster: true}}, []bool{true, false, true}},
		{[]UserSource{{Cluster: true}, {Getent: true}}, []bool{true, false, false}},
	} {
		c := &loginnode.Config{}
		(&File{Users: tt.sources}).revocation(c, connected)
		got := []bool{c.Revoked(ann), c.Revoked(files), c.Revoked(adopted)}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt.sources, got)
		}
		if c.EndProcesses != nil {
			t.Error("processes are killed in a PID namespace that others use")
		}
	}
}

func TestProcessesOf(t *testing.T) {
	proc := t.TempDir()
	for pid, text := range map[string]string{
		"10": "Name:\ta\nState:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\n",
		"11": "Name:\ta\nState:\tZ (zombie)\nUid:\t1000\t1000\t1000\t1000\n",
		"12": "Name:\ta\nState:\tR (running)\nUid:\t10001\t1000\t1000\t1000\n",
		"13": "Name:\tUid:\nState:\tR (running)\nUid:\t1000\t0\t0\t0\n",
	} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "status"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := processesOf(proc, 1000); err != nil || !slices.Equal(got, []int{10, 13}) {
		t.Errorf("%v, %v", got, err)
	}
	if killAll(proc, 0) == nil || killAll(proc, os.Getuid()) == nil {
		t.Error("the server's own processes would be killed")
	}
}
