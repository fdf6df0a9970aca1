package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// process is a process of a job on this node, according to its environment.
type process struct {
	pid                      int
	job, step, local, global string
}

// processes lists what /proc shows of jobs' processes: those of the caller.
func (o *Options) processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := o.p.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		p, task := process{pid: pid, step: "batch", local: "-", global: "-"}, ""
		for kv := range strings.SplitSeq(string(data), "\x00") {
			name, v, _ := strings.Cut(kv, "=")
			switch name {
			case "SLURM_JOB_ID":
				p.job = v
			case "SLURM_STEP_ID":
				p.step = v
			case "SLURM_LOCALID":
				p.local = v
			case "SLURM_PROCID":
				p.global = v
			case "SLURM_TASK_PID":
				task = v
			}
		}
		if task != e.Name() { // a child of a task
			p.local, p.global = "-", "-"
		}
		if p.job != "" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, compareProcesses)
	return out
}

// compareProcesses orders processes as listpids shows them: those of the steps before
// those of the batch script, and tasks before their children.
func compareProcesses(a, b process) int {
	rank := func(isLast bool) int {
		if isLast {
			return 1
		}
		return 0
	}
	return cmp.Or(
		rank(a.step == "batch")-rank(b.step == "batch"), strings.Compare(a.step, b.step),
		rank(a.local == "-")-rank(b.local == "-"), cmp.Compare(a.pid, b.pid),
	)
}

// pidHeader is the first line of listpids.
const pidHeader = "PID      JOBID    STEPID   LOCALID GLOBALID\n"

// listpids lists the processes of jobs on this node. As in Slurm 22.05.8, the header comes
// after a message.
func listpids(_ context.Context, o *Options, args []string) error {
	job, step, isStep, node := "", "", false, "(null)"
	if len(args) > 0 {
		job, step, isStep = strings.Cut(args[0], ".")
		if _, err := strconv.ParseUint(job, 10, 32); err != nil {
			return plain("\"%s\" does not look like a jobid", printable.Escape(args[0]))
		}
	}
	if len(args) > 1 {
		node = printable.Escape(args[1])
	}
	if _, err := strconv.ParseUint(step, 10, 32); isStep && err != nil {
		fmt.Fprintf(o.p.Err, "\"%s\" does not look like a stepid\n", printable.Escape(args[0]))
		return o.p.Print(pidHeader)
	}
	var b strings.Builder
	known := false
	for _, p := range o.processes() {
		if job != "" && p.job != job {
			continue
		}
		known = true
		if step == "" || p.step == step {
			fmt.Fprintf(&b, "%-8d %-8s %-8s %-7s %-8s\n", p.pid, p.job, p.step, p.local, p.global)
		}
	}
	var missing error
	switch {
	case b.Len() > 0:
	case job == "":
		missing = plain("No job steps exist on this node.")
	case known:
		missing = plain("StepId=%s.%s does not exist on node %s.", job, step, node)
	default:
		missing = plain("There are no steps for job %s on node %s.", job, node)
	}
	slurmerr.Print(o.p.Err, "scontrol", missing)
	if err := o.p.Print(pidHeader + b.String()); err != nil || missing == nil {
		return err
	}
	return &slurmerr.Error{Code: 1}
}

// clockTime is the form of a time in pidinfo, that of ctime(3).
const clockTime = "Mon Jan 02 15:04:05 2006"

// withoutLimit is how long a job without a time limit may run, for Slurm.
const withoutLimit = 365 * 24 * 60 * 60

// pidinfo prints the job of a process on this node.
func pidinfo(ctx context.Context, o *Options, args []string) error {
	for _, p := range o.processes() {
		if strconv.Itoa(p.pid) != args[0] {
			continue
		}
		c, err := o.connect()
		if err != nil {
			return err
		}
		list, err := c.Jobs(ctx, jobs.Filter{IDs: []string{p.job}, States: jobs.AllStates})
		if err != nil || len(list.Items) == 0 {
			return cmp.Or(err, error(plain("Failed to locate job for requested pid")))
		}
		s, j := o.settings(list.Time), &list.Items[0]
		end := cmp.Or(j.End, j.Start+withoutLimit)
		return o.p.Print(fmt.Sprintf("Slurm JobId=%s ends at %s\nJob remaining time is %d seconds\n",
			p.job, time.Unix(end, 0).In(s.Location).Format(clockTime), max(0, end-s.Now)))
	}
	return plain("Failed to locate job for requested pid")
}

// write saves a job's script: into FILE, slurm-JOB.sh, or the output (-).
func write(ctx context.Context, o *Options, args []string) error {
	if !keyvalue.Abbreviates(args[0], "batch_script", 5) {
		if keyvalue.Abbreviates(args[0], "config", 4) {
			return slurmerr.New(
				slurmerr.Refused,
				"write config is not possible here: kubectl get partitions,qos,clusters -o yaml writes the configuration",
			)
		}
		return plain("invalid write argument:%s", printable.Escape(args[0]))
	}
	if len(args) < 2 {
		return plain("too few arguments for keyword:write")
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	id := args[1]
	script, err := c.Script(ctx, id)
	if err != nil {
		fmt.Fprintf(o.p.Err, "job script retrieval failed: %s\n", printable.Escape(err.Error()))
		return nil // as Slurm's ends
	}
	file := "slurm-" + id + ".sh"
	if len(args) > 2 {
		file = args[2]
	}
	if file == "-" {
		_, err := o.p.Out.Write(script)
		return err
	}
	if err := os.WriteFile(file, script, 0o666); err != nil {
		return plain("failed to open file `%s`: %s", printable.Escape(file), strerror.Text(err))
	}
	return o.p.Print("batch script for job " + printable.Escape(id) + " written to " + file + "\n")
}

// errnumstr prints the text of an error number.
func errnumstr(_ context.Context, o *Options, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return plain("numeric arguments required for keyword:errnumstr")
	}
	return o.p.Print(cmp.Or(slurmerr.Number(n).Text(), strerror.Number(n)) + "\n")
}

// completing lists the jobs that are ending.
func completing(ctx context.Context, o *Options, _ []string) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	list, err := c.Jobs(ctx, jobs.Filter{States: []string{"COMPLETING"}})
	if err != nil {
		return err
	}
	s := o.settings(list.Time)
	var b strings.Builder
	for i := range list.Items {
		j := &list.Items[i]
		fmt.Fprintf(
			&b,
			"JobId=%s EndTime=%s CompletingTime=%s Nodes(COMPLETING)=%s\n",
			format.JobID(j),
			format.AppendInstant(nil, j.End, "N/A", s),
			format.AppendDurationLong(nil, max(0, s.Now-j.End)),
			printable.Escape(j.NodeList),
		)
	}
	return o.p.Print(b.String())
}

// waitJob waits until the job's nodes are ready.
func waitJob(ctx context.Context, o *Options, args []string) error {
	problem := &slurmerr.Error{Before: []string{"scontrol: Problem running job " + printable.Escape(args[0])}, Code: 1}
	if _, ok := jobs.ParseID(args[0]); !ok {
		return problem
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	done := error(problem)
	err = c.Watch(
		ctx,
		jobs.Filter{IDs: args, States: jobs.AllStates, Fields: []string{"id", "state", "nodeList"}},
		func(e *status.JobEvent) error {
			if e.Type == status.EventMark {
				return nil
			}
			for i := range e.Items {
				switch j := &e.Items[i]; j.State {
				case "PENDING", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING":
					return nil
				case "RUNNING", "SUSPENDED":
					done = o.p.Print("Nodes " + printable.Escape(j.NodeList) + " are ready for use\n")
				}
			}
			return jobs.ErrStopWatch
		},
		nil,
	)
	return cmp.Or(err, done)
}
