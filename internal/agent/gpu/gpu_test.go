package gpu

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/step"
)

func TestNoProgram(t *testing.T) {
	if find() != "" {
		if list, err := Sample(t.Context()); err != nil || len(list) == 0 || list[0].UUID == "" || list[0].Total <= 0 {
			t.Errorf("nvidia-smi of this machine: %+v, %v", list, err)
		}
		t.Skip("this machine has nvidia-smi")
	}
	if _, err := Sample(t.Context()); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestBadAnswers(t *testing.T) {
	for name, script := range map[string]string{
		"fails":   "#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n",
		"garbage": "#!/bin/sh\necho 'No devices were found'\n",
		"index":   "#!/bin/sh\necho 'x, GPU-a, A100, 0, 0, 0'\n",
		"columns": "#!/bin/sh\necho '0, GPU-a, A100'\n",
	} {
		dir := t.TempDir()
		exectest.Write(t, filepath.Join(dir, "nvidia-smi"), script)
		t.Setenv("PATH", dir+":/bin:/usr/bin")
		if list, err := Sample(t.Context()); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func TestOwn(t *testing.T) {
	all := func() []step.GPU { return []step.GPU{{Index: 0}, {Index: 1}, {Index: 2}} }
	if got := Own(all(), 3, nil); len(got) != 3 {
		t.Errorf("only the job's GPUs visible: %v", got)
	}
	if got := Own(all(), 1, []int{2}); len(got) != 1 || got[0].Index != 2 {
		t.Errorf("beside other GPUs: %v", got)
	}
	if got := Own(all(), 1, nil); len(got) != 0 {
		t.Errorf("unknown indexes: %v", got)
	}
}
