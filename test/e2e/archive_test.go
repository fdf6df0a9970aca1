package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchive moves a job from accounting to a file with sacctmgr archive dump and
// restores it, while the cluster runs. Only an administrator may do so.
func TestArchive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "accounting.db")
	d := &database{start(t, "--nodes", "1", "--cpus", "2", "--accounting-storage", path), t, "sqlite", path}
	young, old := d.submit(), "9001"
	d.awaitEnd(young)
	d.awaitRecords(young)
	// The cluster is younger than what can be archived: a job of yesterday.
	same := "restarts, rev, array_job_id, array_task, het_job_id, het_offset, name, user_name, user_id, group_name, group_id, account, qos, part, wckey, " +
		"state, span, time_limit, nodes, cpus, req_cpus, mem, node_list, version, body"
	d.session()("INSERT INTO jobs (uid, job_id, submit_at, eligible_at, start_at, end_at, " + same + ") " +
		"SELECT 'old', " + old + ", submit_at - 90000, eligible_at - 90000, start_at - 90000, end_at - 90000, " + same + " FROM jobs WHERE job_id = " + young)

	listed := func() string {
		code, out, errs := d.run("sacct", "-X", "-n", "-P", "-S", "now-3days", "-o", "jobid,state")
		if code != 0 {
			t.Fatalf("sacct: exit %d: %s", code, errs)
		}
		return out
	}
	both, one := old+"|COMPLETED\n"+young+"|COMPLETED\n", young+"|COMPLETED\n"
	if got := listed(); got != both {
		t.Fatalf("before: %q", got)
	}
	if code, out, errs := d.run("sacctmgr", "-i", "archive", "dump", "Jobs", "PurgeJobAfter=12hours"); code != 0 {
		t.Fatalf("dump: exit %d: %s%s", code, out, errs)
	}
	if got := listed(); got != one {
		t.Errorf("after dump: %q", got)
	}
	files, err := os.ReadDir(filepath.Join(d.state, "archive"))
	if err != nil || len(files) != 1 {
		t.Fatalf("archive: %v, %v", files, err)
	}
	if code, _, errs := d.run("sacctmgr", "-i", "archive", "load", "../accounting.db"); code != 1 || !strings.Contains(errs, "No such file or directory") {
		t.Errorf("load of another directory's file: exit %d: %s", code, errs)
	}
	for range 2 { // the second time the records exist already
		if code, out, errs := d.run("sacctmgr", "-i", "archive", "load", "file="+files[0].Name()); code != 0 {
			t.Fatalf("load: exit %d: %s%s", code, out, errs)
		}
		if got := listed(); got != both {
			t.Errorf("after load: %q", got)
		}
	}
}
