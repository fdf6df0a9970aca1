package scontrol

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
)

type anything = Cluster

// terminating is a cluster that terminates the processes of a job before it answers.
type terminating struct{ anything }

func (terminating) Operate(context.Context, status.Operation) (*status.OperationResult, error) {
	return &status.OperationResult{}, syscall.Kill(os.Getpid(), syscall.SIGTERM)
}

// A program that requeues its own job gets the result, even if its processes get SIGTERM first.
func TestRequeueOfOwnJobIsAnswered(t *testing.T) {
	inJob := func(name string) (string, bool) { return "7", name == "SLURM_JOB_ID" }
	o := New(&stdio.Process{LookupEnv: inJob}, func() (Cluster, error) { return terminating{}, nil })
	if err := o.Run(t.Context(), []string{"requeue", "7"}); err != nil {
		t.Error(err)
	}
}
