package option_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// TestRefusalsOfUsers compares the messages to users about options of root with those of Slurm 22.05.8.
// What Slurm's command finds comes before what its controller finds, and --reboot before
// everything else that the controller finds.
func TestRefusalsOfUsers(t *testing.T) {
	const reboot = "rebooting of nodes is only allowed for admins"
	for line, want := range map[string]string{
		"sbatch --reboot": "sbatch: error: " + reboot +
			"; Batch job submission failed: Access/permission denied",
		"sbatch -L nosuch:0 --reboot": "sbatch: error: " + reboot +
			"; Batch job submission failed: Access/permission denied",
		"salloc --reboot": "salloc: error: " + reboot +
			"; Job submit/allocate failed: Access/permission denied",
		"srun --test-only --reboot":   "srun: error: " + reboot + "; allocation failure: Access/permission denied",
		"sbatch --reboot -t x":        "Invalid --time specification",
		"srun --uid=nosuch":           "--uid only permitted by root user",
		"salloc --uid=0":              "--uid only permitted by root user",
		"sbatch --context=x":          "",
		"srun --cluster-constraint=x": "",
	} {
		words := strings.Fields(line)
		command := map[string]option.Command{"sbatch": option.Sbatch, "srun": option.Srun, "salloc": option.Salloc}[words[0]]
		p, err := option.ParseAs(1000, command, append(words[1:], "true"), nil)
		if err == nil {
			err = p.Verify()
		}
		got := ""
		if e, ok := errors.AsType[*slurmerr.Error](err); ok {
			got = strings.Join(append(e.Before, e.Message), "; ")
		}
		if strings.TrimSuffix(got, "; ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
