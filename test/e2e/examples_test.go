package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// examples runs the launch recipes of examples/ with stand-ins for their frameworks,
// which make the same calls of Slurm's commands and meet at the same addresses.
func (c *cluster) examples(t *testing.T) {
	dir, err := filepath.Abs("testdata/examples")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(c.environ("")[0], "PATH=")
	c.scripts(t, "testdata/examples", "PATH="+filepath.Join(dir, "bin")+":"+path,
		"PYTHONPATH="+filepath.Join(dir, "lib"), "PYTHONDONTWRITEBYTECODE=1", "SPARK_HOME="+filepath.Join(dir, "spark"))
}

// changes runs the probes of the table of changes in docs/compatibility.md: calls with supported
// options, or with options that cause a warning, succeed; calls with refused options fail; each prints
// the text in the table.
func changes(t *testing.T, env []string) {
	dir := t.TempDir()
	run := func(line string) (string, error) {
		words := strings.Fields(line)
		cmd := exec.Command("env", words...) // finds the command in env's PATH
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	job, err := run("sbatch --parsable --hold --wrap true")
	if err != nil {
		t.Fatal(job, err)
	}
	job = strings.TrimSpace(job)
	cancel := []string{job}
	for _, c := range option.Changes() {
		if c.Probe == "" {
			continue
		}
		t.Run(c.Release+" "+c.Probe, func(t *testing.T) {
			out, err := run(strings.ReplaceAll(c.Probe, "JOB", job))
			if fails := c.State == option.ChangeRefused; fails != (err != nil) && c.State != option.ChangeAbsent {
				t.Errorf("%v: the table has %s\n%s", err, c.State, out)
			}
			if !strings.Contains(out, c.Says) {
				t.Errorf("prints %q, want %q", out, c.Says)
			}
			if id, ok := strings.CutPrefix(out, "Submitted batch job "); ok {
				cancel = append(cancel, strings.TrimSpace(id))
			}
		})
	}
	if out, err := run("scancel " + strings.Join(cancel, " ")); err != nil {
		t.Error(out, err)
	}
}
