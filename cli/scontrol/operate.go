package scontrol

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// parseJobs parses the words after a verb: ids, or jobname=NAME.
func parseJobs(verb string, args []string) status.Operation {
	op := status.Operation{Verb: verb}
	for _, a := range args {
		key, v, found := strings.Cut(a, "=")
		switch {
		case found && (strings.EqualFold(key, "jobname") || strings.EqualFold(key, "name")):
			op.Names = append(op.Names, v)
			continue
		case verb == status.OpRequeueHold && found && strings.EqualFold(key, "state") &&
			keyvalue.Abbreviates(v, "SpecialExit", 2):
			op.Set = map[string]string{"State": v}
			continue
		case strings.HasPrefix(verb, status.OpRequeue) && keyvalue.Abbreviates(a, "Incomplete", 1):
			op.Set = map[string]string{"Incomplete": "yes"}
			continue
		case found && strings.EqualFold(key, "jobid"):
			a = v
		}
		op.Jobs = append(op.Jobs, value.SplitJobs(a)...)
	}
	return op
}

// held returns a command whose errors name Slurm's call.
func held(verb string) func(context.Context, *Options, []string) error {
	return func(ctx context.Context, o *Options, args []string) error {
		return o.operate(ctx, parseJobs(verb, args), func(item status.OperationStatus) []string {
			line := aboutJob(item.Job, item.Error)
			if tasks(item.Job) {
				return []string{line}
			}
			return []string{line, "slurm_suspend error: " + item.Error}
		})
	}
}

// plainly returns a command whose errors name only the job.
func plainly(verb string) func(context.Context, *Options, []string) error {
	return func(ctx context.Context, o *Options, args []string) error {
		return o.operate(ctx, parseJobs(verb, args), func(item status.OperationStatus) []string {
			why := item.Error
			suspends := verb == status.OpSuspend || verb == status.OpResume
			if suspends && item.Code == status.CodeInvalidJobID &&
				strings.Trim(item.Job, "0123456789") == "" {
				why = "Unexpected message received" // what slurmctld's answer comes to in 22.05
			}
			if verb == status.OpTop || suspends && item.Code == status.CodeAccessDenied {
				return []string{why + " for job " + item.Job}
			}
			return []string{aboutJob(item.Job, why)}
		})
	}
}

// operate carries out an operation; say words the failure of one job.
func (o *Options) operate(
	ctx context.Context, op status.Operation, say func(status.OperationStatus) []string,
) error {
	if len(op.Jobs) == 0 && len(op.Names) == 0 {
		return nil // nothing but commas, as in Slurm
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	if strings.HasPrefix(op.Verb, status.OpRequeue) {
		defer o.outliveJob()()
	}
	result, err := c.Operate(ctx, op)
	if err != nil {
		return err
	}
	var failed []string
	for _, item := range result.Items {
		if item.Error != "" {
			item.Job, item.Error = printable.Escape(item.Job), printable.Escape(item.Error)
			failed = append(failed, say(item)...)
		}
	}
	if failed == nil {
		return nil
	}
	if o.quiet {
		failed = nil
	}
	return &slurmerr.Error{Before: failed, Code: 1}
}

// outliveJob makes scontrol ignore SIGTERM inside a job until the returned function is called. A
// program that requeues its own job relies on the exit status of scontrol, and Slurm answers
// before it signals the processes of the job.
func (o *Options) outliveJob() (restore func()) {
	if _, inJob := o.p.LookupEnv("SLURM_JOB_ID"); !inJob {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	return func() { signal.Stop(signals) }
}

// notify sends the rest of the line to the job.
func notify(ctx context.Context, o *Options, args []string) error {
	if args[0] == "" || args[0][0] < '0' || args[0][0] > '9' {
		return plain("Invalid job_id %sjob notify failure: No error", printable.Escape(args[0]))
	}
	op := status.Operation{Verb: status.OpNotify, Jobs: value.SplitJobs(args[0]), Message: strings.Join(args[1:], " ")}
	return o.operate(ctx, op, func(item status.OperationStatus) []string {
		return []string{"job notify failure: " + item.Error}
	})
}
