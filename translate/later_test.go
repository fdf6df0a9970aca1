package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/option"
)

// later are the options, and the values of options, that releases of Slurm after
// 22.05 added up to 25.11, and those of pyxis, with their status in each command. A
// dash stands for a command that does not have the option.
var later = []struct {
	since, arg           string
	sbatch, srun, salloc string
}{
	{"23.02", "--tres-per-task=cpu=2,gres/gpu:a100=1", "supported", "supported", "supported"},
	{"23.02", "--tres-per-task=cpu:2", "supported", "supported", "supported"},
	{"23.02", "--tres-bind=gres/gpu:single:2", "supported", "supported", "supported"},
	{"23.02", "--extra=text", "supported", "supported", "supported"},
	{"23.02", "--container-id=x", "refused", "refused", "refused"},
	{"23.11", "--external-launcher", "-", "supported", "-"},
	{"23.11", "--treewidth=50", "-", "warned", "-"},
	{"23.11", "--gres-flags=one-task-per-sharing", "warned", "warned", "warned"},
	{"23.11", "--gres-flags=multiple-tasks-per-sharing", "warned", "warned", "warned"},
	{"24.05", "--oom-kill-step", "supported", "supported", "supported"},
	{"24.05", "--oom-kill-step=0", "supported", "supported", "supported"},
	{"24.05", "--stepmgr", "supported", "supported", "supported"},
	{"24.05", "--wait-for-children", "-", "supported", "-"},
	{"24.05", "--resv-ports=4", "warned", "supported", "warned"},
	{"24.11", "--segment=2", "supported", "supported", "supported"},
	{"24.11", "--exclusive=topo", "refused", "refused", "refused"},
	{"24.11", "--gres-flags=allow-task-sharing", "supported", "supported", "supported"},
	{"25.11", "--consolidate-segments", "supported", "supported", "supported"},
	{"25.11", "--spread-segments", "supported", "supported", "supported"},
	{"25.11", "--network=unique-channel-per-segment", "warned", "warned", "warned"},
	{"25.11", "--requeue=expedite", "warned", "-", "-"},
	{"pyxis", "--container-image=busybox", "supported", "supported", "supported"},
	{"pyxis", "--container-mounts=/home:/home", "supported", "supported", "supported"},
	{"pyxis", "--container-workdir=/tmp", "supported", "supported", "supported"},
	{"pyxis", "--container-name=x:exec", "supported", "supported", "supported"},
	{"pyxis", "--container-env=A,B", "supported", "supported", "supported"},
	{"pyxis", "--container-readonly", "supported", "supported", "supported"},
	{"pyxis", "--container-writable", "supported", "supported", "supported"},
	{"pyxis", "--container-mount-home", "warned", "warned", "warned"},
	{"pyxis", "--no-container-mount-home", "warned", "warned", "warned"},
	{"pyxis", "--container-save=/x", "refused", "refused", "refused"},
	{"pyxis", "--container-remap-root", "refused", "refused", "refused"},
	{"pyxis", "--no-container-remap-root", "supported", "supported", "supported"},
	{"pyxis", "--container-entrypoint", "warned", "warned", "warned"},
	{"pyxis", "--no-container-entrypoint", "supported", "supported", "supported"},
}

// TestLaterOptions checks the status of each on the command line, and in a script
// of sbatch.
func TestLaterOptions(t *testing.T) {
	for _, o := range later {
		for c, want := range map[option.Command]string{
			option.Sbatch: o.sbatch, option.Srun: o.srun, option.Salloc: o.salloc,
		} {
			p, err := option.Parse(c, []string{o.arg, "true"}, nil)
			var warnings []string
			if p != nil {
				warnings = p.Warnings
			}
			if got := statusOf(warnings, err); got != want {
				t.Errorf("%s of %s: %s %s, want %s (%v, %v)", o.arg, o.since, c, got, want, warnings, err)
			}
		}
		script := "#!/bin/sh\n#SBATCH " + o.arg + "\ntrue\n"
		s, err := translate.Sbatch(translate.Input{
			Script: []byte(script), Dir: "/home/a", Now: time.Unix(1800000000, 0),
		})
		var warnings []string
		if s != nil {
			warnings = s.Warnings
		}
		if got := statusOf(warnings, err); got != o.sbatch {
			t.Errorf("#SBATCH %s of %s: %s, want %s (%v, %v)", o.arg, o.since, got, o.sbatch, warnings, err)
		}
	}
}

// statusOf returns the status of an option by the messages about it.
func statusOf(warnings []string, err error) string {
	switch {
	case err != nil && strings.Contains(err.Error(), "unrecognized option"):
		return "-"
	case err != nil && strings.Contains(err.Error(), "is not possible here"):
		return "refused"
	case err != nil:
		return "wrong: " + err.Error()
	case len(warnings) > 0:
		return "warned"
	}
	return "supported"
}

// TestLaterOptionsAreListed checks that the list above has all options of the table
// that are newer than 22.05.
func TestLaterOptionsAreListed(t *testing.T) {
	for _, o := range option.Table() {
		found := o.Since == "" || o.Since == "X11" || o.Name == "resources"
		for _, l := range later {
			name, _, _ := strings.Cut(strings.TrimPrefix(l.arg, "--"), "=")
			found = found || name == o.Name
		}
		if !found {
			t.Errorf("--%s of %s is not in the list", o.Name, o.Since)
		}
	}
}
