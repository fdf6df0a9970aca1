package objects

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

const ring = `#!/bin/bash
#SBATCH -J ring # a comment
#SBATCH --nodes=3 --ntasks-per-node=2 --cpus-per-task=2
#SBATCH --mem-per-cpu=512M --gres=gpu:a100:1
srun ./ring
`

func process(out, err *strings.Builder) *stdio.Process {
	return &stdio.Process{
		Streams:   stdio.Streams{In: strings.NewReader(ring), Out: out, Err: err},
		LookupEnv: func(string) (string, bool) { return "alice", true },
		Environ:   func() []string { return nil },
		Now:       func() time.Time { return time.Unix(1800000000, 0).UTC() },
		Dir:       func() (string, error) { return "/home/alice", nil },
		ReadFile:  func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		UID:       1000, GID: 1000,
	}
}

func TestRing(t *testing.T) {
	var out, messages strings.Builder
	if err := Run(process(&out, &messages), nil); err != nil {
		t.Fatal(err)
	}
	group, set, _ := strings.Cut(out.String(), "---\n")
	var fields struct {
		Kind string
		Spec struct {
			MinMember      int
			ReplicatedJobs []struct {
				Template struct {
					Spec struct {
						Completions int
						Template    struct {
							Spec struct {
								Containers []struct {
									Resources struct{ Limits map[string]string }
								}
							}
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(group), &fields); err != nil || fields.Kind != "PodGroup" ||
		fields.Spec.MinMember != 3 {
		t.Errorf("%v:\n%s", err, group)
	}
	if err := yaml.Unmarshal([]byte(set), &fields); err != nil || fields.Kind != "JobSet" ||
		len(fields.Spec.ReplicatedJobs) != 1 {
		t.Fatalf("%v:\n%s", err, set)
	}
	spec := fields.Spec.ReplicatedJobs[0].Template.Spec
	limits := spec.Template.Spec.Containers[0].Resources.Limits
	if spec.Completions != 3 || limits["cpu"] != "4" || limits["memory"] != "2Gi" ||
		limits["gres.berth.hpc/gpu-a100"] != "1" {
		t.Errorf("%d nodes with %v", spec.Completions, limits)
	}
}

func TestRefusal(t *testing.T) {
	var out, messages strings.Builder
	err := Run(process(&out, &messages), []string{"missing.sh"})
	if slurmerr.ExitCode(err) != 1 || err.Error() != "Unable to open file missing.sh" {
		t.Errorf("%v", err)
	}
}
