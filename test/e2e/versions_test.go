package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestStoredVersions: objects of each earlier schema are accepted without a field lost, are the same
// after a restart, and have the effect that they had.
func TestStoredVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/versions/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { useVersion(t, file) })
	}
}

// useVersion stores the objects of a file in a cluster of their own.
func useVersion(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--nodes", "1", "--cpus", "2"}
	d := &database{start(t, args...), t, "", ""}
	var objects []object
	for _, doc := range strings.Split(string(text), "---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	path := func(o object) string {
		kind := strings.ToLower(o["kind"].(string)) + "s"
		return "/apis/berth.hpc/v1alpha1/" + strings.Replace(kind, "qoss", "qos", 1) + "/" + o["metadata"].(object)["name"].(string)
	}
	for _, o := range objects {
		admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
		if code, answer := admin.do(t, http.MethodPatch, path(o)+"?fieldManager=old&force=true&fieldValidation=Strict", o,
			"Content-Type", "application/apply-patch+yaml"); code != http.StatusOK && code != http.StatusCreated {
			t.Errorf("%s: %d %s", path(o), code, answer)
		}
	}
	d.down(t)
	d.up(t, args...)
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	for _, o := range objects {
		var got struct{ Spec object }
		code, answer := admin.do(t, http.MethodGet, path(o), nil)
		if err := json.Unmarshal([]byte(answer), &got); code != http.StatusOK || err != nil {
			t.Errorf("%s: %d %v", path(o), code, err)
		}
		for field, want := range o["spec"].(object) {
			if !reflect.DeepEqual(got.Spec[field], want) {
				t.Errorf("%s: %s is %v, was %v", path(o), field, got.Spec[field], want)
			}
		}
	}
	for line, want := range map[string]string{
		"scontrol show config":                               "MaxArraySize            = 2001",
		"scontrol show partition batch":                      "AllowAccounts=physics",
		"scontrol show licenses":                             "LicenseName=matlab",
		"sacctmgr -nP show qos fast":                         "fast|50|",
		"sacctmgr -nP show user anna format=user,adminlevel": "anna|Operator",
		"sacctmgr -nP show account physics":                  "physics|the physics department|science",
		"scontrol show reservation course":                   "Licenses=matlab:2",
	} {
		words := strings.Fields(line)
		if _, out, errs := d.run(words[0], words[1:]...); !strings.Contains(out, want) {
			t.Errorf("%s: %s%s; want %s", line, out, errs, want)
		}
	}
	if _, out, errs := d.run("sbatch", "--test-only", "-A", "physics", "--wrap", "true"); !strings.Contains(out+errs, "Job 5") {
		t.Errorf("the first job: %s%s", out, errs)
	}
}
