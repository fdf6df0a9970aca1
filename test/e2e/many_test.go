package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestCancelMany: many pending jobs are cancelled by one call, at once, and remain
// cancelled if every process is killed immediately afterwards.
func TestCancelMany(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--nodes", "1", "--cpus", "1"), t, "", ""}
	mark := filepath.Join(t.TempDir(), "ran")
	const jobs = 150
	code, first, errs := d.run("sbatch", "--parsable", "-n1", "--wrap", "sleep 300")
	if code != 0 {
		t.Fatal(errs)
	}
	eventually.Holds(d.t, "the first job runs", func() bool {
		_, out, _ := d.run("squeue", "-h", "-o", "%T")
		return out == "RUNNING\n"
	})
	for range jobs {
		if code, _, errs := d.run("sbatch", "-n1", "-J", "many", "-o", "/dev/null", "--wrap", "touch "+mark); code != 0 {
			t.Fatal(errs)
		}
	}
	if code, _, errs := d.run("scancel", "-n", "many", "-u", currentUser()); code != 0 || errs != "" {
		t.Fatalf("scancel: exit %d, %s", code, errs)
	}
	count := func(want string, args ...string) {
		t.Helper()
		_, out, errs := d.run(args[0], args[1:]...)
		if n := strings.Count(out, want+"\n"); n != jobs || errs != "" {
			t.Errorf("%s: %d of %d are %s; %s", args, n, jobs, want, errs)
		}
	}
	count("CANCELLED", "squeue", "-h", "-n", "many", "-t", "all", "-o", "%T")
	count(fmt.Sprint("CANCELLED by ", os.Getuid()), "sacct", "-n", "-X", "-P", "-u", currentUser(), "--name", "many", "-o", "State")
	d.kill()
	d.up(t)
	count("CANCELLED", "squeue", "-h", "-n", "many", "-t", "all", "-o", "%T")
	if code, _, errs := d.run("scancel", strings.TrimSpace(first)); code != 0 {
		t.Fatal(errs)
	}
	d.awaitEnd(d.submit()) // any job that is still pending would run before it
	count(fmt.Sprint("CANCELLED by ", os.Getuid()), "sacct", "-n", "-X", "-P", "-u", currentUser(), "--name", "many", "-o", "State")
	if _, err := os.Stat(mark); err == nil {
		t.Error("a cancelled job has run")
	}
}

// kill kills the cluster's process.
func (d *database) kill() {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.state, "process.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	var p struct{ PID int }
	if err := json.Unmarshal(text, &p); err != nil || p.PID == 0 {
		d.t.Fatalf("%s: %v", text, err)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	eventually.Holds(d.t, "the process has ended", func() bool { return syscall.Kill(p.PID, 0) != nil })
}
