package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/durable"
)

// Generated keys are kept, because clients would warn about new ones; RSA signs only with SHA-2.
func TestHostKeysStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := hostKeys(dir, false); err == nil {
		t.Error("a server without host keys starts")
	}
	first, err := hostKeys(dir, true)
	if err != nil || len(first) != 2 {
		t.Fatalf("%d keys, %v", len(first), err)
	}
	again, err := hostKeys(dir, true)
	if err != nil || len(again) != len(first) {
		t.Fatalf("%d keys, %v", len(again), err)
	}
	for i := range first {
		if string(first[i].PublicKey().Marshal()) != string(again[i].PublicKey().Marshal()) {
			t.Errorf("another %s after a restart", first[i].PublicKey().Type())
		}
		if first[i].PublicKey().Type() != ssh.KeyAlgoRSA {
			continue
		}
		m, ok := first[i].(ssh.MultiAlgorithmSigner)
		if !ok || slices.Contains(m.Algorithms(), ssh.KeyAlgoRSA) {
			t.Error("the RSA key signs with SHA-1")
		}
	}
	if err := os.Chmod(filepath.Join(dir, "ssh_host_rsa_key"), 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := hostKeys(dir, true); err == nil || !strings.Contains(err.Error(), "everybody may read it") {
		t.Errorf("a key that everybody may read: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ssh_host_rsa_key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "ssh_host_rsa_key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hostKeys(dir, true); err == nil {
		t.Error("a broken key is ignored")
	}
}

// TestHostKeysAfterACrash: a crash can leave keys that are empty, and one that was being
// written. The login node starts, with new keys if none is left.
func TestHostKeysAfterACrash(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "ssh_host_rsa_key"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ssh_host_rsa_key"+durable.Suffix), []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := hostKeys(dir, false); err == nil {
		t.Errorf("%d keys without generating any", len(keys))
	}
	if keys, err := hostKeys(dir, true); err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
