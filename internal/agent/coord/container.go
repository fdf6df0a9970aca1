package coord

import (
	"fmt"
	"os"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/value"
)

// checkContainer refuses a step that asks for another container than that of
// its job, in which it runs. What the job's has already may be asked for again.
func (j *Job) checkContainer(want map[string]string) error {
	switch image := want["image"]; {
	case image == "" || image == j.Container["image"]:
	case j.Container["image"] == "":
		return otherContainer("--container-image", "which has not chosen an image")
	default:
		return otherContainer("--container-image", "whose image is "+j.Container["image"])
	}
	if want["readonly"] != "" && j.Container["readonly"] == "" {
		return otherContainer("--container-readonly", "whose file system can be written to")
	}
	if want["writable"] != "" && j.Container["readonly"] != "" {
		return otherContainer("--container-writable", "whose file system cannot be written to")
	}
	return j.checkMounts(want["mounts"])
}

// checkMounts: a step sees the folders that its job mounts, and those that are
// at the same place inside and outside.
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
			return otherContainer("--container-mounts", "which does not have "+m.Target+" mounted so")
		}
	}
	return nil
}

func otherContainer(option, but string) error {
	return step.Refuse(fmt.Sprintf("pyxis: %s: a step runs in the containers of its job, %s", option, but),
		fmt.Sprintf("pyxis: give %s to sbatch, salloc or an srun outside of a job", option))
}
