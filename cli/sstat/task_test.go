package sstat

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
)

// arrayOnly has the array 12, none of whose tasks runs.
type arrayOnly struct{}

func (arrayOnly) AttachTo(_ context.Context, name string) (io.ReadWriteCloser, error) {
	if name == "12" {
		return nil, &kube.Error{Kind: kube.Conflict, Message: "pending"}
	}
	return nil, &kube.Error{Kind: kube.NotFound, Message: "no such job"}
}

// The answers are those of Slurm 22.05.8.
func TestMissingTasks(t *testing.T) {
	for job, want := range map[string]string{
		"12_99":   "sstat: error: No steps running for job 12\n",
		"12_99.0": "sstat: error: StepId=12.0 not found running.\n",
		"13_99":   "sstat: error: couldn't get steps for job 13\n",
	} {
		var out, messages bytes.Buffer
		p := &stdio.Process{Streams: stdio.Streams{Out: &out, Err: &messages}, Now: time.Now,
			LookupEnv: func(string) (string, bool) { return "", false }}
		err := New(p, func() (Cluster, error) { return arrayOnly{}, nil }).Run(t.Context(), []string{"-n", "-j", job})
		if err != nil || messages.String() != want || out.Len() > 0 {
			t.Errorf("%s: %v, %q, %q", job, err, out.String(), messages.String())
		}
	}
}
