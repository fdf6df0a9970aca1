package agent_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/job"
)

// TestImageEnvironment: a job that chose its image has the image's variables,
// but for those that --container-env keeps, and the directory of
// --container-workdir.
func TestImageEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		choice map[string]string
		want   string
	}{
		"none":  {nil, ":mine:mine:no\n"},
		"image": {map[string]string{"image": "x", "env": "KEPT,OTHER", "workdir": "/usr"}, "image:image:mine:yes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, shape{
				cpus: []int32{1}, env: []string{"BOTH=mine", "KEPT=mine"},
				script: "#!/bin/sh\n[ \"$PWD\" = /usr ] && here=yes || here=no\necho \"$OF_IMAGE:$BOTH:$KEPT:$here\"\n",
				with:   func(g *gang) { g.image = []string{"OF_IMAGE=image", "BOTH=image", "KEPT=image"} },
				job:    func(j *job.Job) { j.Batch.Container = tt.choice },
			})
			if _, out := g.finish(); out != tt.want {
				t.Errorf("output %q, want %q", out, tt.want)
			}
		})
	}
}
