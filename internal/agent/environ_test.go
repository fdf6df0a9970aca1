package agent

import "testing"

// TestCommandsInPath: the directory of the commands is in PATH once.
func TestCommandsInPath(t *testing.T) {
	a := &Agent{config: &Config{BinDir: "/opt/berth"}}
	for path, want := range map[string]string{
		"/bin":                     "PATH=/opt/berth:/bin",
		"/bin:/opt/berth:/usr/bin": "PATH=/bin:/opt/berth:/usr/bin",
	} {
		if got := a.withCommands(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
