package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// AcctDocument is what sacct --json and --yaml print: the form of Slurm 22.05
// (openapi/dbv0.0.38).
func AcctDocument(items []status.Record, s *AcctSettings) Object {
	list := make([]any, len(items))
	for i := range items {
		list[i] = acctJobObject(&items[i], s)
	}
	return append(DocumentHead("openapi/dbv0.0.38", "Slurm OpenAPI DB v0.0.38"), Member{"jobs", list})
}

// DocumentHead are the members that every document of Slurm 22.05 begins with.
func DocumentHead(kind, name string) Object {
	version := strings.Split(build.Slurm, ".")
	number := func(i int) int {
		n, _ := strconv.Atoi(version[i])
		return n
	}
	return Object{
		{"meta", Object{
			{"plugin", Object{{"type", kind}, {"name", name}}},
			{"Slurm", Object{{"version", Object{{"major", number(0)}, {"micro", number(2)}, {"minor", number(1)}}}, {"release", build.Slurm}}},
		}},
		{"errors", []any{}},
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func acctJobObject(r *status.Record, s *AcctSettings) Object {
	row := &AcctRow{Job: r}
	user, system := acctUsed(row)
	steps := make([]any, len(r.Steps))
	for i := range r.Steps {
		steps[i] = acctStepObject(r, &r.Steps[i], s)
	}
	var limit any
	if r.TimeLimit > 0 {
		limit = r.TimeLimit
	}
	memory, _ := tresOf(r.ReqTRES, "mem")
	reason := r.Reason
	if reason == "" {
		reason = "None"
	}
	return Object{
		{"account", r.Account},
		{"comment", Object{{"administrator", orNull(r.AdminComment)}, {"job", orNull(r.Comment)}, {"system", orNull(r.SystemComment)}}},
		{"allocation_nodes", r.Nodes},
		{"array", arrayObject(r)},
		{"association", Object{{"account", r.Account}, {"cluster", r.Cluster}, {"partition", nil}, {"user", r.User}}},
		{"cluster", r.Cluster},
		{"constraints", r.Constraints},
		{"container", orNull(r.Container)},
		{"derived_exit_code", exitObject(r.Derived, r.DerivedSignal)},
		{"time", Object{
			{"elapsed", AcctElapsed(row, s)}, {"eligible", r.Eligible}, {"end", r.End}, {"start", r.Start}, {"submission", r.Submit},
			{"suspended", r.Suspended}, {"system", cpuObject(system)}, {"limit", limit}, {"total", cpuObject(user + system)}, {"user", cpuObject(user)},
		}},
		{"exit_code", exitObject(r.ExitCode, r.Signal)},
		{"flags", acctDocFlags(r)},
		{"group", r.Group},
		{"het", hetObject(r)},
		{"job_id", r.ID},
		{"name", r.Name},
		{"mcs", Object{{"label", ""}}},
		{"nodes", r.NodeList},
		{"partition", r.Partition},
		{"priority", r.Priority},
		{"qos", orNull(r.QOS)},
		{"required", Object{{"CPUs", r.ReqCPUs}, {"memory", memory}}},
		{"kill_request_user", orNull(r.KilledBy)},
		{"reservation", Object{{"id", 0}, {"name", orZero(r.Reservation)}}},
		{"state", Object{{"current", r.State}, {"reason", reason}}},
		{"steps", steps},
		{"tres", Object{{"allocated", tresObjects(r.AllocTRES)}, {"requested", tresObjects(r.ReqTRES)}}},
		{"user", r.User},
		{"wckey", Object{{"wckey", r.WCKey}, {"flags", []any{}}}},
		{"working_directory", r.WorkDir},
	}
}

func orZero(s string) any {
	if s == "" {
		return 0
	}
	return s
}

func arrayObject(r *status.Record) Object {
	var task, id any
	if r.ArrayJobID != 0 {
		if n, err := strconv.Atoi(r.ArrayTaskID); err == nil {
			id = n
		} else {
			task = orNull(r.ArrayTaskID)
		}
	}
	return Object{
		{"job_id", r.ArrayJobID},
		{"limits", Object{{"max", Object{{"running", Object{{"tasks", 0}}}}}}},
		{"task", task}, {"task_id", id},
	}
}

func hetObject(r *status.Record) Object {
	if r.HetJobID == 0 {
		return Object{{"job_id", 0}, {"job_offset", nil}}
	}
	return Object{{"job_id", r.HetJobID}, {"job_offset", r.HetOffset}}
}

func cpuObject(micros int64) Object {
	return Object{{"seconds", micros / 1e6}, {"microseconds", micros % 1e6}}
}

// signalNames are strsignal(3)'s for those that end jobs.
var signalNames = map[int32]string{1: "Hangup", 2: "Interrupt", 3: "Quit", 6: "Aborted", 7: "Bus error", 8: "Floating point exception",
	9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe", 14: "Alarm clock", 15: "Terminated",
	24: "CPU time limit exceeded", 25: "File size limit exceeded"}

func exitObject(code, signal int32) Object {
	switch {
	case signal != 0:
		return Object{{"status", "SIGNALED"}, {"return_code", nil}, {"signal", Object{{"signal_id", signal}, {"name", orNull(signalNames[signal])}}}}
	case code != 0:
		return Object{{"status", "ERROR"}, {"return_code", code}}
	}
	return Object{{"status", "SUCCESS"}, {"return_code", 0}}
}

// tresIDs are the numbers that Slurm's database begins with.
var tresIDs = map[string]int{"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "fs": 6, "vmem": 7, "pages": 8}

// tresObjects lists TRES by their numbers.
func tresObjects(list string) []any {
	type item struct {
		id int
		o  Object
	}
	var items []item
	next := 1001
	for text := range strings.SplitSeq(list, ",") {
		full, count, ok := strings.Cut(text, "=")
		if !ok {
			continue
		}
		kind, name, _ := strings.Cut(full, "/")
		id, known := tresIDs[kind]
		if !known {
			id, next = next, next+1
		}
		n, _ := strconv.ParseInt(count, 10, 64)
		if kind == "mem" {
			n, _ = tresOf(text, "mem")
		}
		items = append(items, item{id, Object{{"type", kind}, {"name", orNull(name)}, {"id", id}, {"count", n}}})
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.id - b.id })
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i].o
	}
	return out
}

func acctStepObject(r *status.Record, p *status.StepRecord, s *AcctSettings) Object {
	row := &AcctRow{Job: r, Step: p}
	names, err := hostlist.Expand(p.NodeList)
	if err != nil {
		names = nil
	}
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	var id any = p.Step
	if n, err := strconv.Atoi(p.Step); err == nil {
		id = n
	}
	layout := p.Layout
	if layout == "" {
		layout = "Unknown"
	}
	return Object{
		{"nodes", Object{{"list", list}, {"count", p.Nodes}, {"range", p.NodeList}}},
		{"tres", Object{
			{"requested", Object{{"max", usageObjects(p, true)}, {"min", []any{}}, {"average", usageObjects(p, false)}, {"total", []any{}}}},
			{"consumed", Object{{"max", []any{}}, {"min", []any{}}, {"average", []any{}}, {"total", []any{}}}},
			{"allocated", tresObjects(p.AllocTRES)},
		}},
		{"time", Object{
			{"elapsed", AcctElapsed(row, s)}, {"end", p.End}, {"start", p.Start}, {"suspended", p.Suspended},
			{"system", cpuObject(p.SystemCPU)}, {"total", cpuObject(p.UserCPU + p.SystemCPU)}, {"user", cpuObject(p.UserCPU)},
		}},
		{"exit_code", exitObject(p.ExitCode, p.Signal)},
		{"tasks", Object{{"count", p.Tasks}}},
		{"pid", nil},
		{"CPU", Object{{"requested_frequency", Object{{"min", 0}, {"max", 0}}}, {"governor", []any{}}}},
		{"kill_request_user", orNull(p.KilledBy)},
		{"state", p.State},
		{"statistics", Object{{"CPU", Object{{"actual_frequency", 0}}}, {"energy", Object{{"consumed", 0}}}}},
		{"step", Object{{"job_id", r.ID}, {"het", Object{{"component", nil}}}, {"id", id}, {"name", p.Name}}},
		{"task", Object{{"distribution", layout}}},
	}
}

// usageObjects are what the tasks used: the most of one, or the average.
func usageObjects(p *status.StepRecord, most bool) []any {
	if !p.Measured {
		return []any{}
	}
	out := []any{}
	add := func(kind string, name any, id int, average, highest int64, node string, task int32) {
		o := Object{{"type", kind}, {"name", name}, {"id", id}, {"count", average}}
		if most {
			o[3].Value = highest
			o = append(o, Member{"task", task}, Member{"node", node})
		}
		out = append(out, o)
	}
	add("cpu", nil, 1, p.AveCPU/1000, p.AveCPU/1000, p.MinCPUNode, p.MinCPUTask)
	add("mem", nil, 2, p.AveRSS, p.MaxRSS, p.MaxRSSNode, p.MaxRSSTask)
	add("fs", "disk", 6, p.AveDiskRead, p.MaxDiskRead, p.MaxDiskReadNode, p.MaxDiskReadTask)
	add("vmem", nil, 7, p.AveVMSize, p.MaxVMSize, p.MaxVMSizeNode, p.MaxVMSizeTask)
	add("pages", nil, 8, p.AvePages, p.MaxPages, p.MaxPagesNode, p.MaxPagesTask)
	return out
}

func acctDocFlags(r *status.Record) []any {
	if r.Start == 0 {
		return []any{}
	}
	return []any{"STARTED_ON_BACKFILL"}
}
