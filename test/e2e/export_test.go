package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestExport: what berth export prints of one cluster makes another one the same, what was
// changed with scontrol and sacctmgr included, and these changes are marked.
func TestExport(t *testing.T) {
	t.Parallel()
	first := &database{start(t, "--slurm-conf", "testdata/pools/slurm.conf"), t, "", ""}
	for _, command := range []string{
		"scontrol update partitionname=main maxtime=30 allowqos=normal",
		"scontrol create partitionname=small nodes=n1 maxtime=5",
		"scontrol create reservation reservationname=works nodes=n1 starttime=now+1day duration=60 users=root flags=daily",
		"sacctmgr -i add account science description=research organization=lab fairshare=7 grptres=cpu=64",
		"sacctmgr -i add qos fast priority=10 maxwall=30",
		"sacctmgr -i modify account science set qos=fast",
	} {
		words := strings.Fields(command)
		if code, out, errs := first.run(words[0], words[1:]...); code != 0 {
			t.Fatalf("%s: %d %s%s", command, code, out, errs)
		}
	}
	exported := first.export()
	for _, want := range []string{
		"# changed with scontrol: spec.allowQOS, spec.maxTime\napiVersion: berth.hpc/v1alpha1\nkind: Partition\n",
		"kind: NodePool", "kind: Reservation", "kind: Account",
	} {
		if !strings.Contains(exported, want) {
			t.Errorf("%q is not in\n%s", want, exported)
		}
	}
	second := &database{start(t, "--nodes", "1", "--cpus", "2"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(second.state, "kubeconfig"))
	for _, doc := range strings.Split(exported, "---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		kind := map[string]string{"QOS": "qos"}[o["kind"].(string)]
		if kind == "" {
			kind = strings.ToLower(o["kind"].(string)) + "s"
		}
		name := o["metadata"].(object)["name"].(string)
		code, text := admin.do(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/"+kind+"/"+name+"?fieldManager=gitops&force=true", o,
			"Content-Type", "application/apply-patch+yaml")
		if code != http.StatusOK && code != http.StatusCreated {
			t.Errorf("%s %s: %d %s", kind, name, code, text)
		}
	}
	again := second.export()
	for _, doc := range strings.Split(withoutComments(exported), "---\n") {
		if !strings.Contains(again, doc) {
			t.Errorf("missing:\n%s\nin\n%s", doc, again)
		}
	}
}

func (d *database) export() string {
	d.t.Helper()
	code, out, errs := d.run("berth", "export")
	if code != 0 {
		d.t.Fatalf("berth export: %d %s", code, errs)
	}
	return out
}

// withoutComments removes the lines that are comments.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
