package option_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestStartWithin: as in Slurm 22.05.8, --immediate=0 is no limit.
func TestStartWithin(t *testing.T) {
	for arg, want := range map[string]int32{"--immediate=0": -1, "-I": 1, "-I5": 5, "-H": -1} {
		p, err := option.Parse(option.Srun, []string{arg, "true"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := int32(-1)
		if s := p.Client.StartWithin(); s != nil {
			got = *s
		}
		if got != want {
			t.Errorf("%s: %d, want %d", arg, got, want)
		}
	}
}

// TestRelativeWithoutAJob: srun refuses --relative beside a list of nodes for new jobs, too.
func TestRelativeWithoutAJob(t *testing.T) {
	for _, list := range []string{"-wn1", "-xn1"} {
		p, err := option.Parse(option.Srun, []string{"-r0", list, "true"}, nil)
		if err == nil {
			err = p.Verify()
		}
		if err == nil || err.Error() != "-r,--relative not allowed with -w,--nodelist or -x,--exclude." {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// TestNice: an empty value is as none, 100.
func TestNice(t *testing.T) {
	for arg, want := range map[string]int32{"--nice=": 100, "--nice": 100, "--nice=0": 0, "--nice=7": 7} {
		p, err := option.Parse(option.Sbatch, []string{arg, "job.sh"}, nil)
		if err != nil || p.Job.Nice != want {
			t.Errorf("%s: %d %v, want %d", arg, p.Job.Nice, err, want)
		}
	}
}
