package coord

import (
	"fmt"
	"os"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/value"
)

// checkContainer returns an error if a step requests a container other than that of its
// job. Steps run in the job's containers, so they may only repeat options of the job.
func (j *Job) checkContainer(want map[string]string) error {
	switch image := want["image"]; {
	case image == "" || image == j.Container["image"]:
	case j.Container["image"] == "":
		return refuseContainer("--container-image", "which has not chosen an image")
	default:
		return refuseContainer("--container-image", "whose image is "+j.Container["image"])
	}
	if want["readonly"] != "" && j.Container["readonly"] == "" {
		return refuseContainer("--container-readonly", "whose file system can be written to")
	}
	if want["writable"] != "" && j.Container["readonly"] != "" {
		return refuseContainer("--container-writable", "whose file system cannot be written to")
	}
	return j.checkMounts(want["mounts"])
}

// checkMounts returns an error if the step requests mounts that it cannot have: it sees the
// directories that its job mounts, and those with the same path inside and outside.
func (j *Job) checkMounts(text string) error {
	if text == "" {
		return nil
	}
	mounts, err := value.Mounts(text)
	if err != nil {
		return step.Refuse("pyxis: --container-mounts: " + err.Error())
	}
	var have []value.Mount
	if own := j.Container["mounts"]; own != "" {
		have, _ = value.Mounts(own) // it was checked when the job was submitted
	}
	for _, m := range mounts {
		if slices.Contains(have, m) {
			continue
		}
		if _, err := os.Stat(m.Target); m.Source != m.Target || m.ReadOnly || err != nil {
			return refuseContainer("--container-mounts", "which does not have "+m.Target+" mounted so")
		}
	}
	return nil
}

func refuseContainer(option, reason string) error {
	return step.Refuse(fmt.Sprintf("pyxis: %s: a step runs in the containers of its job, %s", option, reason),
		fmt.Sprintf("pyxis: give %s to sbatch, salloc or an srun outside of a job", option))
}
