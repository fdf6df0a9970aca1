package localcluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWithdraw: a file that another cluster has written meanwhile is kept.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	mine, other, gone := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "3")
	for path, data := range map[string]string{mine: "mine", other: "mine"} {
		if err := replaceFile(path, os.Getuid(), os.Getgid(), []byte(data)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := replaceFile(other, os.Getuid(), os.Getgid(), []byte("another's")); err != nil {
		t.Fatal(err)
	}
	me := Account{Name: "me", UID: int64(os.Getuid()), GID: int64(os.Getgid())}
	files := []machineFile{{mine, me, []byte("mine")}, {other, me, []byte("mine")}, {gone, me, []byte("mine")}}
	for i := range files {
		if err := files[i].renew([]byte("renewed")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("a removed file was created again: %v", err)
	}
	for path, want := range map[string]string{mine: "renewed", other: "another's"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("after the renewal: %q, %v, want %q", text, err, want)
		}
	}
	if err := withdraw(files); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "2" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestRestore: when the cluster that was found so far has ended, another one is found, and
// one that runs is not replaced.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	gone, other := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	if err := os.WriteFile(other, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	me := Account{Name: "me", UID: int64(os.Getuid()), GID: int64(os.Getgid())}
	k := &cluster{machine: []machineFile{{gone, me, []byte("mine")}, {other, me, []byte("mine")}}}
	k.restore()
	for path, want := range map[string]string{gone: "mine", other: "another's"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
	}
}

// TestPlainClustersAreNotFound: commands do not find a cluster without Berth.
func TestPlainClustersAreNotFound(t *testing.T) {
	k := &cluster{Config: Config{Plain: true}}
	nobody := Account{Name: "berth-test", UID: 4294967, GID: 4294967}
	if err := k.publish(nobody, []byte("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	if len(k.machine) > 0 {
		t.Errorf("the kubeconfig of a plain cluster is in %s", k.machine[0].path)
	}
}
