package objects

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// effects are options, calls with them, and their effect on the objects that berth
// translate prints. The option table names this test for options of containers.
var effects = map[string]struct {
	args []string
	want []string
}{
	"nodes":           {[]string{"-N3"}, []string{"minMember: 3", "completions: 3"}},
	"ntasks":          {[]string{"-n5"}, []string{`cpu: "5"`}},
	"ntasks-per-node": {[]string{"-N2", "--ntasks-per-node=3"}, []string{"completions: 2", `cpu: "3"`}},
	"cpus-per-task":   {[]string{"-c4"}, []string{`cpu: "4"`}},
	"mincpus":         {[]string{"--mincpus=6"}, []string{`cpu: "6"`}},
	"overcommit":      {[]string{"-O", "-n7"}, []string{`cpu: "1"`}},
	"extra-node-info": {[]string{"-B2:3"}, []string{`cpu: "6"`}},
	"mem":             {[]string{"--mem=3G"}, []string{"memory: 3Gi"}},
	"mem-per-cpu":     {[]string{"--mem-per-cpu=512M", "-c4"}, []string{"memory: 2Gi"}},
	"mem-per-gpu":     {[]string{"--mem-per-gpu=4G", "-G2"}, []string{"memory: 8Gi"}},
	"gres": {
		[]string{"--gres=fpga:2,gpu:a100:1"},
		[]string{`gres.berth.hpc/fpga: "2"`, `gres.berth.hpc/gpu-a100: "1"`},
	},
	"gpus": {
		[]string{"-N2", "--gpus=v100:4"},
		[]string{`gres.berth.hpc/gpu-v100: "2"`, "completions: 2"},
	},
	"gpus-per-node": {[]string{"-N2", "--gpus-per-node=3"}, []string{`gres.berth.hpc/gpu: "3"`}},
	"gpus-per-task": {[]string{"-n3", "--gpus-per-task=2"}, []string{`gres.berth.hpc/gpu: "6"`, `cpu: "3"`}},
	"gpus-per-socket": {
		[]string{"--gpus-per-socket=2", "--sockets-per-node=2"},
		[]string{`gres.berth.hpc/gpu: "4"`},
	},
	"tres-per-task": {
		[]string{"-n2", "--tres-per-task=cpu=3,gres/gpu:a100=2"},
		[]string{`cpu: "6"`, `gres.berth.hpc/gpu-a100: "4"`},
	},
	"cpus-per-gpu":   {[]string{"-G2", "--cpus-per-gpu=5"}, []string{`cpu: "10"`}},
	"ntasks-per-gpu": {[]string{"-G2", "--ntasks-per-gpu=3"}, []string{`cpu: "6"`}},
	"partition":      {[]string{"-p", "long"}, []string{"berth.hpc/partition: long"}},
	"container-image": {
		[]string{"--container-image=docker://nvcr.io#nvidia/pytorch:24.01"},
		[]string{"image: nvcr.io/nvidia/pytorch:24.01"},
	},
	"container-mounts": {
		[]string{"--container-image=busybox", "--container-mounts=/home/alice/data:/data:ro"},
		[]string{"mountPath: /data", "subPath: alice/data"},
	},
	"no-container-remap-root": {
		[]string{"--container-image=busybox", "--no-container-remap-root"},
		[]string{"runAsUser: 1000", "runAsNonRoot: true"},
	},
	"no-container-entrypoint": {
		[]string{"--container-image=busybox", "--no-container-entrypoint"},
		[]string{"command:", "/agent"},
	},
	"container-readonly": {
		[]string{"--container-image=busybox", "--container-readonly"},
		[]string{"readOnlyRootFilesystem: true", "mountPath: /tmp"},
	},
}

func TestOptionsOnObjects(t *testing.T) {
	for name, e := range effects {
		t.Run(name, func(t *testing.T) {
			o := option.Lookup(option.Sbatch, name)
			if o == nil {
				t.Fatal("no such option")
			}
			given := false
			for _, a := range e.args {
				given = given || strings.HasPrefix(a, "--"+name) ||
					o.Short != 0 && strings.HasPrefix(a, "-"+string(o.Short))
			}
			if !given {
				t.Errorf("%v does not give --%s", e.args, name)
			}
			text := printed(t, e.args...)
			for _, w := range e.want {
				if !strings.Contains(text, w) {
					t.Errorf("%v: no %q in\n%s", e.args, w, text)
				}
			}
		})
	}
}

// printed returns the output of berth translate for a script with one line.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, messages strings.Builder
	p := process(&out, &messages)
	p.In = strings.NewReader("#!/bin/sh\ntrue\n")
	if err := Run(p, args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// TestWrongContainers checks that invalid images and mounts are refused.
func TestWrongContainers(t *testing.T) {
	for _, args := range [][]string{{"--container-mounts=/home"}, {"--container-image=/x.sqsh"}, {"--container-image=x", "--container-mounts=/root:/r"}} {
		var out, messages strings.Builder
		p := process(&out, &messages)
		p.In = strings.NewReader("#!/bin/sh\ntrue\n")
		if err := Run(p, args); err == nil || !strings.Contains(err.Error()+messages.String(), "pyxis: ") {
			t.Errorf("%v: %v %s", args, err, messages.String())
		}
	}
}
