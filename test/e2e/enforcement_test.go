package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root runs an administrator's command, which must succeed, and returns its output.
func (s *shared) root(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, args[0]), args[1:]...)
	cmd.Env = s.environ(t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestEnforcement: bob, who may use the account physics and the QOS normal, tries other
// accounts and QOS with each client.
func TestEnforcement(t *testing.T) {
	s := newShared(t)
	for _, args := range [][]string{
		{"add", "qos", "high"}, {"add", "account", "physics"}, {"add", "account", "arts"},
		{"add", "user", s.bob.name, "account=physics", "qos=normal"},
		{"add", "user", s.alice.name, "account=arts"},
	} {
		s.root(t, append([]string{"sacctmgr", "-i"}, args...)...)
	}
	bob, _ := callerOf(t, filepath.Join(s.bob.home, ".local/state/berth/user.kubeconfig"))
	b := &bounded{s, bob, "/apis/berth.hpc/v1alpha1/namespaces/user-" + s.bob.name + "/batchjobs"}
	const badQOS, badAccount = "Invalid qos specification", "Invalid account or account/partition combination specified"
	id, path := b.held(t)
	for _, c := range []struct{ option, setting, member, value, want string }{
		{"--qos=high", "qos=high", "qos", "high", badQOS},
		{"--account=arts", "account=arts", "account", "arts", badAccount},
	} {
		if _, errs := s.fails(t, s.bob, "sbatch", c.option, "-o", "/dev/null", "--wrap", "true"); errs != "sbatch: error: Batch job submission failed: "+c.want+"\n" {
			t.Errorf("sbatch %s: %q", c.option, errs)
		}
		if _, errs := s.fails(t, s.bob, "scontrol", "update", "jobid="+id, c.setting); !strings.Contains(errs, c.want) {
			t.Errorf("scontrol update %s: %q", c.setting, errs)
		}
		b.raw(t, path, c.option, c.want, object{c.member: c.value})
	}
	if out := s.run(t, s.bob, "squeue", "-h", "-j", id, "-o", "%q %a"); out != "normal physics" {
		t.Errorf("QOS and account of the job: %q", out)
	}
	if out := s.root(t, "scontrol", "show", "config"); !strings.Contains(out, "AccountingStorageEnforce = associations,limits,qos") {
		t.Errorf("scontrol show config: %s", out)
	}
	if out := s.run(t, s.bob, "srun", "sh", "-c", "echo $SLURM_JOB_QOS $SLURM_JOB_ACCOUNT"); out != "normal physics" {
		t.Errorf("QOS and account in the job's environment: %q", out)
	}
	// An operator may give bob's job any QOS.
	s.root(t, "scontrol", "update", "jobid="+id, "qos=high")
	s.run(t, s.bob, "scancel", id)
	// Where nothing is enforced bob may use any account and QOS.
	admin, _ := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	if code, text := admin.do(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/clusters/berth", object{"spec": object{"accountingStorageEnforce": []string{"none"}}}); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	if out := s.root(t, "scontrol", "show", "config"); !strings.Contains(out, "AccountingStorageEnforce = none") {
		t.Errorf("scontrol show config: %s", out)
	}
	s.run(t, s.bob, "srun", "--account=arts", "--qos=high", "true")
}
