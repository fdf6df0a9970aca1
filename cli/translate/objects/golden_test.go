package objects

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/translate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden translates the scripts of testdata, one for each kind of job. The golden
// file has the neutral Job of each component and its objects.
func TestGolden(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.sh")
	if err != nil || len(scripts) < 12 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".sh"), func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(script, ".sh") + ".yaml"
			got := whole(t, text)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf(
					"%s is not what the script becomes (go test ./cli/translate/objects -update writes it anew):\n%s",
					golden,
					got,
				)
			}
		})
	}
}

// whole returns the neutral job and the output of berth translate, with its messages as
// comments.
func whole(t *testing.T, script []byte) []byte {
	t.Helper()
	var out, messages strings.Builder
	p := process(&out, &messages)
	p.In = bytes.NewReader(script)
	p.Hostname = func() (string, error) { return "login", nil }
	if err := Run(p, nil); err != nil {
		t.Fatal(err)
	}
	p.In = bytes.NewReader(script)
	in, err := input(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := translate.Sbatch(*in)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for line := range strings.Lines(messages.String()) {
		b.WriteString("# " + line)
	}
	b.WriteString("# spec.job of the BatchJob:\n")
	jobs := []any{s.Job}
	for _, c := range s.Components {
		jobs = append(jobs, c)
	}
	for _, j := range jobs {
		data, err := yaml.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		b.WriteString("---\n")
	}
	b.WriteString("# The objects:\n" + out.String())
	return b.Bytes()
}
