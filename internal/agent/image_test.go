package agent_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// TestImageEnvironment checks that a job with an image of its own has the image's
// variables, except those that --container-env preserves, and the directory of
// --container-workdir.
func TestImageEnvironment(t *testing.T) {
	t.Parallel()
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

// TestStepsInContainers checks that a step may repeat the container options of its job,
// and may not have others.
func TestStepsInContainers(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--container-image=x --container-mounts=/usr:/else:ro --container-readonly --container-name=y": "ran\n",
		"--container-image=y":           "srun: error: pyxis: --container-image: a step runs in the containers of its job, whose image is x\n",
		"--container-writable":          "srun: error: pyxis: --container-writable: a step runs in the containers of its job, whose file system cannot be written to\n",
		"--container-mounts=/usr:/else": "srun: error: pyxis: --container-mounts: a step runs in the containers of its job, which does not have /else mounted so\n",
	} {
		t.Run("step", func(t *testing.T) { // a short name: paths of sockets contain it
			g := start(t, shape{
				cpus: []int32{1}, script: "#!/bin/sh\nexec srun " + args + " echo ran 2>&1\n",
				job: func(j *job.Job) {
					j.Batch.Container = map[string]string{
						"image":    "x",
						"readonly": "true",
						"mounts":   "/usr:/else:ro",
						"name":     "y",
					}
				},
			})
			if _, out := g.finish(); !strings.HasPrefix(out, want) {
				t.Errorf("%s: output %q, want %q", args, out, want)
			}
		})
	}
}

// TestDeviceEnvironment checks that a job with generic resources, and no other job, has what a
// device plugin or driver has told its container, and that its own variables stay.
func TestDeviceEnvironment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gres []wire.HostGRES
		want string
	}{
		"none": {nil, ":mine:no\n:mine:no\n"},
		"gpu":  {[]wire.HostGRES{{Name: "gpu", Count: 1, Indexes: "0"}}, "/mps:mine:no\n/mps:mine:no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			show := "sh -c 'echo $CUDA_MPS_PIPE_DIRECTORY:$BOTH:${KUBERNETES_PORT-no}'\n"
			g := start(t, shape{
				cpus: []int32{1}, env: []string{"BOTH=mine"}, script: "#!/bin/sh\n" + show + "srun " + show,
				with: func(g *gang) {
					g.image = []string{"CUDA_MPS_PIPE_DIRECTORY=/mps", "BOTH=plugin", "KUBERNETES_PORT=1"}
					g.base.Hosts[0].GRES = tt.gres
				},
			})
			if _, out := g.finish(); out != tt.want {
				t.Errorf("output %q, want %q", out, tt.want)
			}
		})
	}
}
