package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// Values without quotes are read as they are written: YAML reads "off" as false, also
// in lists.
func TestSwitchesAreReadAsWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "loginnode.yaml")
	text := "listen: [\":2222\"]\nperSourcePenalties: {disabled: true}\nforwarding: {disabled: true}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Penalties == nil || !f.Penalties.Off || !f.Forwarding.Off {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(name, []byte("no-such-field: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name); err == nil {
		t.Error("an unknown field was accepted")
	}
}
