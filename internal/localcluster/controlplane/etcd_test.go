package controlplane

import (
	"net"
	"path/filepath"
	"testing"
)

// TestFindEtcd: one member that accepts connections is enough.
func TestFindEtcd(t *testing.T) {
	dir := t.TempDir()
	absent := "unix://" + filepath.Join(dir, "absent")
	if err := findEtcd([]string{absent}); err == nil {
		t.Error("an etcd was found where there is none")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := findEtcd([]string{absent, "unix://" + l.Addr().String()}); err != nil {
		t.Error(err)
	}
}
