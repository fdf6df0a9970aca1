package format

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// acctDoc converts records to one of two forms: that of Slurm 22.05
// (openapi/dbv0.0.38), or that of the data parsers of later releases.
type acctDoc struct {
	later    bool
	settings *AcctSettings
}

// AcctDocument returns the document of sacct --json and --yaml in the form f.
func AcctDocument(items []status.Record, s *AcctSettings, f *dump.Form) Object {
	d := &acctDoc{later: f.Modern(), settings: s}
	list := make([]any, len(items))
	for i := range items {
		list[i] = d.job(&items[i])
	}
	jobs := Member{"jobs", list}
	if !d.later {
		return append(DocumentHead("openapi/dbv0.0.38", "Slurm OpenAPI DB v0.0.38"), jobs)
	}
	return Object{jobs, {"meta", laterMeta(f)}, {"errors", []any{}}, {"warnings", []any{}}}
}

// laterMeta returns the member "meta" of later documents, in which the numbers of a
// release are strings.
func laterMeta(f *dump.Form) Object {
	version := strings.Split(build.Slurm, ".")
	part := func(i int) any { return strings.TrimLeft(version[i], "0") }
	command := make([]any, len(f.Command))
	for i, word := range f.Command {
		command[i] = word
	}
	return Object{
		{"plugin", Object{
			{"type", ""}, {"name", ""}, {"data_parser", "data_parser/" + f.Parser}, {"accounting_storage", ""},
		}},
		{"client", Object{{"source", ""}, {"user", f.User}, {"group", ""}}},
		{"command", command},
		{"slurm", Object{
			{"version", Object{{"major", part(0)}, {"micro", part(2)}, {"minor", part(1)}}},
			{"release", build.Slurm}, {"cluster", f.Cluster},
		}},
	}
}

// LaterHead returns the first members of every document of later releases.
func LaterHead(f *dump.Form) Object {
	return Object{{"meta", laterMeta(f)}, {"errors", []any{}}, {"warnings", []any{}}}
}

// DocumentHead returns the first members of every document of Slurm 22.05.
func DocumentHead(kind, name string) Object {
	version := strings.Split(build.Slurm, ".")
	number := func(i int) int {
		n, _ := strconv.Atoi(version[i])
		return n
	}
	return Object{
		{"meta", Object{
			{"plugin", Object{{"type", kind}, {"name", name}}},
			{"Slurm", Object{
				{"version", Object{{"major", number(0)}, {"micro", number(2)}, {"minor", number(1)}}},
				{"release", build.Slurm},
			}},
		}},
		{"errors", []any{}},
	}
}

// text returns a text; an empty one is null in 22.05.
func (d *acctDoc) text(s string) any {
	if s == "" && !d.later {
		return nil
	}
	return s
}

// number returns a number that may be unset; it is then null in 22.05.
func (d *acctDoc) number(n int64, set bool) any {
	switch {
	case d.later:
		return Object{{"set", set}, {"infinite", false}, {"number", n}}
	case set:
		return n
	}
	return nil
}

// plain returns a number that is always set in 22.05.
func (d *acctDoc) plain(n int64) any {
	if d.later {
		return d.number(n, true)
	}
	return n
}

func (d *acctDoc) state(s string) any {
	if d.later {
		return []any{s}
	}
	return s
}

func (d *acctDoc) job(r *status.Record) Object {
	o := Object{
		{"account", r.Account},
		{"comment", Object{
			{"administrator", d.text(r.AdminComment)}, {"job", d.text(r.Comment)},
			{"system", d.text(r.SystemComment)},
		}},
		{"allocation_nodes", r.Nodes},
		{"array", d.array(r)},
		{"association", d.association(r)},
		{"cluster", r.Cluster},
		{"constraints", r.Constraints},
		{"container", d.text(r.Container)},
		{"derived_exit_code", d.exit(r.Derived, r.DerivedSignal, r.End == 0)},
		{"time", d.time(r)},
		{"exit_code", d.exit(r.ExitCode, r.Signal, r.End == 0)},
		{"flags", acctDocFlags(r)},
		{"group", r.Group},
		{"het", Object{{"job_id", r.HetJobID}, {"job_offset", d.number(int64(r.HetOffset), r.HetJobID != 0)}}},
		{"job_id", r.ID},
		{"name", r.Name},
		{"mcs", Object{{"label", ""}}},
		{"nodes", cmp.Or(r.NodeList, "None assigned")},
		{"partition", r.Partition},
		{"priority", d.plain(r.Priority)},
		{"qos", d.text(r.QOS)},
		{"required", d.required(r)},
		{"kill_request_user", d.text(r.KilledBy)},
		{"reservation", Object{{"id", 0}, {"name", d.reservation(r)}}},
		{"state", Object{{"current", d.state(r.State)}, {"reason", cmp.Or(r.Reason, "None")}}},
		{"steps", d.steps(r)},
		{"tres", Object{{"allocated", d.tres(r.AllocTRES)}, {"requested", d.tres(r.ReqTRES)}}},
		{"user", r.User},
		{"wckey", Object{{"wckey", r.WCKey}, {"flags", []any{}}}},
		{"working_directory", r.WorkDir},
	}
	if d.later {
		o = append(o, Object{
			{"block", ""}, {"extra", ""}, {"failed_node", ""},
			{"hold", r.State == status.StatePending && r.Priority == 0}, {"licenses", r.Licenses}, {"script", ""},
			{"submit_line", r.SubmitLine}, {"used_gres", ""},
		}...)
	}
	return o
}

func (d *acctDoc) association(r *status.Record) Object {
	o := Object{{"account", r.Account}, {"cluster", r.Cluster}, {"partition", d.text("")}, {"user", r.User}}
	if d.later {
		o = append(o, Member{"id", 0})
	}
	return o
}

func (d *acctDoc) time(r *status.Record) Object {
	row := &AcctRow{Job: r}
	user, system := acctUsed(row)
	var start any = r.Start
	if !d.later && r.Start == 0 && r.End != 0 {
		start = nil
	}
	return Object{
		{"elapsed", AcctElapsed(row, d.settings)}, {"eligible", r.Eligible}, {"end", r.End}, {"start", start},
		{"submission", r.Submit}, {"suspended", r.Suspended}, {"system", cpuObject(system)},
		{"limit", d.limit(r.TimeLimit)}, {"total", cpuObject(user + system)}, {"user", cpuObject(user)},
	}
}

func (d *acctDoc) limit(minutes int32) any {
	if d.later && minutes < 0 {
		return Object{{"set", false}, {"infinite", true}, {"number", 0}}
	}
	return d.number(int64(max(0, minutes)), minutes > 0)
}

func (d *acctDoc) required(r *status.Record) Object {
	memory, _ := tresOf(r.ReqTRES, "mem")
	if !d.later {
		return Object{{"CPUs", r.ReqCPUs}, {"memory", memory}}
	}
	return Object{
		{"CPUs", r.ReqCPUs}, {"memory_per_cpu", d.number(r.ReqMem, r.ReqMemPerCPU)},
		{"memory_per_node", d.number(r.ReqMem, !r.ReqMemPerCPU)},
	}
}

// reservation returns the name of the reservation. Without one 22.05 has the number
// 0.
func (d *acctDoc) reservation(r *status.Record) any {
	if r.Reservation == "" && !d.later {
		return 0
	}
	return r.Reservation
}

func (d *acctDoc) array(r *status.Record) Object {
	var task string
	var index, running int64
	single := false
	if r.ArrayJobID != 0 {
		spec, limit, _ := strings.Cut(r.ArrayTaskID, "%")
		running, _ = strconv.ParseInt(limit, 10, 64) // 0: no limit
		if n, err := strconv.ParseInt(spec, 10, 32); err == nil {
			index, single = n, true
		} else {
			task = taskBits(spec)
		}
	}
	return Object{
		{"job_id", r.ArrayJobID},
		{"limits", Object{{"max", Object{{"running", Object{{"tasks", running}}}}}}},
		{"task", d.text(task)}, {"task_id", d.number(index, single)},
	}
}

// taskBits returns a set of tasks in the form of Slurm's database: 1-3 is 0xE.
func taskBits(spec string) string {
	a, err := value.Array(spec)
	if err != nil {
		return spec
	}
	bits := new(big.Int)
	for _, i := range a.Indexes {
		bits.SetBit(bits, int(i), 1)
	}
	return fmt.Sprintf("0x%X", bits)
}

func cpuObject(micros int64) Object {
	return Object{{"seconds", micros / 1e6}, {"microseconds", micros % 1e6}}
}

// signalNames are the names of strsignal(3) for signals that kill jobs.
var signalNames = map[int32]string{
	1: "Hangup", 2: "Interrupt", 3: "Quit", 6: "Aborted", 7: "Bus error", 8: "Floating point exception", 9: "Killed",
	10: "User defined signal 1", 11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe",
	14: "Alarm clock", 15: "Terminated", 24: "CPU time limit exceeded", 25: "File size limit exceeded",
}

func (d *acctDoc) exit(code, signal int32, pending bool) Object {
	if d.later {
		return d.laterExit(code, signal, pending)
	}
	switch {
	case signal != 0:
		return Object{
			{"status", "SIGNALED"}, {"return_code", nil},
			{"signal", Object{{"signal_id", signal}, {"name", d.text(signalNames[signal])}}},
		}
	case code != 0:
		return Object{{"status", "ERROR"}, {"return_code", code}}
	}
	return Object{{"status", "SUCCESS"}, {"return_code", 0}}
}

func (d *acctDoc) laterExit(code, signal int32, pending bool) Object {
	word, name := "SUCCESS", ""
	switch {
	case pending:
		word = "PENDING"
	case signal != 0:
		word, name = "SIGNALED", value.SignalName(signal)
	case code != 0:
		word = "ERROR"
	}
	return Object{
		{"status", []any{word}}, {"return_code", d.number(int64(code), !pending && signal == 0)},
		{"signal", Object{{"id", d.number(int64(signal), signal != 0)}, {"name", name}}},
	}
}

// tresIDs are the ids of the TRES that every database of Slurm has.
var tresIDs = map[string]int{
	"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "fs": 6, "vmem": 7, "pages": 8,
}

// TRESObjects returns a list of TRES in the form of Slurm 22.05, ordered by their ids.
func TRESObjects(list string) []any { return new(acctDoc).tres(list) }

// tres returns a list of TRES ordered by their ids.
func (d *acctDoc) tres(list string) []any {
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
		o := Object{{"type", kind}, {"name", d.text(name)}, {"id", id}, {"count", n}}
		items = append(items, item{id, o})
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.id - b.id })
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i].o
	}
	return out
}

func acctDocFlags(r *status.Record) []any {
	if r.Start == 0 {
		return []any{}
	}
	return []any{"CLEAR_SCHEDULING", "STARTED_ON_BACKFILL"}
}
