package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCountOOM(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("v1/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n")
	write("v1/memory/pod/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
	write("v2/memory.events", "low 0\noom 1\noom_kill 5\noom_group_kill 0\n")
	write("v2/pod/memory.events", "oom_kill 1\n")
	for _, tt := range []struct {
		name, root, membership string
		expect                 int64
	}{
		{"version 1, the host's tree", "v1", "12:pids:/x\n6:memory:/pod/job\n0::/pod\n", 2},
		{"version 1, its own tree", "v1", "6:memory:/elsewhere\n", 7},
		{"version 2, the host's tree", "v2", "0::/pod\n", 1},
		{"version 2, its own tree", "v2", "0::/\n", 5},
		{"nothing known", "v2", "", 5},
		{"nothing there", "none", "6:memory:/pod\n", 0},
	} {
		if n := countOOM(filepath.Join(root, tt.root), tt.membership); n != tt.expect {
			t.Errorf("%s: %d, want %d", tt.name, n, tt.expect)
		}
	}
}
