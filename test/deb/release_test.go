package deb

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestReleaseHasEveryProgram: every separate program is built for a
// release. The rest are commands of the multi-call binary.
func TestReleaseHasEveryProgram(t *testing.T) {
	data, err := os.ReadFile("../../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type build struct {
		ID, Main, Binary  string
		GOOS, GOARCH, Env []string
	}
	var release struct {
		Builds []build
		NFPMs  []struct {
			ID  string
			IDs []string
		}
	}
	if err := yaml.Unmarshal(data, &release); err != nil {
		t.Fatal(err)
	}
	// pmix-server needs cgo and the site's OpenPMIx.
	links := []string{"sbatch", "squeue", "srun", "scancel", "pmix-server"}
	built := map[string]bool{}
	for _, b := range release.Builds {
		built[b.Binary] = true
		if b.Main != "./cmd/"+b.Binary || !slices.Contains(b.GOARCH, "arm64") || !slices.Contains(b.GOOS, "linux") || !slices.Contains(b.Env, "CGO_ENABLED=0") {
			t.Errorf("build %+v", b)
		}
	}
	mains, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil || len(mains) < 5 {
		t.Fatalf("%d mains, %v", len(mains), err)
	}
	for _, m := range mains {
		if name := filepath.Base(filepath.Dir(m)); !built[name] && !slices.Contains(links, name) {
			t.Errorf("goreleaser.yaml does not build %s", name)
		}
	}
	for _, p := range release.NFPMs {
		for _, id := range p.IDs {
			if !slices.ContainsFunc(release.Builds, func(b build) bool { return b.ID == id }) {
				t.Errorf("package %s: no build %s", p.ID, id)
			}
		}
	}
}
