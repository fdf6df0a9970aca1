package format

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// listing is what testdata/record recorded from a Slurm 22.05.8 cluster.
type listing struct {
	Jobs  []map[string]any `json:"jobs"`
	Nodes struct {
		Nodes []map[string]any `json:"nodes"`
	} `json:"nodes"`
	Calls []struct {
		Args          []string `json:"args"`
		Before, After int64
		Out, Err      string
		Code          int
	} `json:"calls"`
}

func readListing(t testing.TB) *listing {
	t.Helper()
	data, err := os.ReadFile("testdata/listing.json")
	if err != nil {
		t.Fatal(err)
	}
	l := new(listing)
	if err := json.Unmarshal(data, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// slurmJob is a job in the output of squeue --json of 22.05.
type slurmJob map[string]any

func (j slurmJob) text(key string) string { s, _ := j[key].(string); return s }
func (j slurmJob) flag(key string) bool   { b, _ := j[key].(bool); return b }
func (j slurmJob) number(key string) int64 {
	f, _ := j[key].(float64)
	return int64(f)
}
func (j slurmJob) small(key string) int32 { return int32(j.number(key)) }

// row returns the job as a row of the queue API. What --json does not have comes
// from scontrol show job.
func (j slurmJob) row(show map[string]string) status.Job {
	r := status.Job{
		ID: j.number("job_id"), Name: j.text("name"), User: j.text("user_name"), UID: j.number("user_id"),
		Group: j.text("group_name"), GID: j.number("group_id"),
		Account: j.text("account"), QOS: j.text("qos"), Partition: j.text("partition"), State: j.text("job_state"),
		Reason:     j.text("state_reason"),
		Dependency: j.text("dependency"), Priority: j.number("priority"), Nice: j.small("nice"),
		Submit: j.number("submit_time"), Eligible: j.number("eligible_time"),
		Start: j.number("start_time"), End: j.number("end_time"), TimeLimit: j.small("time_limit"),
		TimeMin: j.small("time_minimum"), Nodes: j.small("node_count"),
		MaxNodes: j.small("max_nodes"), CPUs: j.small("cpus"), Tasks: j.small("tasks"),
		CPUsPerTask: j.small("cpus_per_task"), TasksPerNode: j.small("tasks_per_node"),
		Features: j.text("features"), NodeList: j.text("nodes"), ReqNodes: j.text("required_nodes"),
		ExcNodes: j.text("excluded_nodes"), BatchHost: j.text("batch_host"),
		Contiguous: j.flag("contiguous"), Command: j.text("command"), WorkDir: j.text("current_working_directory"),
		Comment: j.text("comment"), Requeue: j.flag("requeue"),
		Restarts: j.small("restart_cnt"), Reservation: j.text("resv_name"), Licenses: j.text("licenses"),
		WCKey: j.text("wckey"), NoBatch: !j.flag("batch_flag"),
		Accrue: j.number("accrue_time"), LastSched: j.number("last_sched_evaluation"), Deadline: j.number("deadline"),
		SuspendTime: j.number("suspend_time"),
		PreSuspend:  j.number("pre_sus_time"), AdminComment: j.text("admin_comment"),
		TmpDisk: j.number("minimum_tmp_disk_per_node"),
		MinCPUs: j.small("minimum_cpus_per_node"), MaxCPUs: j.small("max_cpus"),
		SocketsPerNode: j.small("sockets_per_node"), CoresPerSocket: j.small("cores_per_socket"),
		ThreadsPerCore: j.small("threads_per_core"), TasksPerSocket: j.small("tasks_per_socket"),
		TasksPerCore: j.small("tasks_per_core"), TRESPerJob: j.text("tres_per_job"),
		TRESPerSocket: j.text("tres_per_socket"), TRESPerTask: j.text("tres_per_task"),
		MemPerTRES: j.text("memory_per_tres"), CPUsPerTRES: j.text("cpus_per_tres"),
		Prefer: j.text("prefer"), Container: j.text("container"), ArrayMax: j.small("array_max_tasks"),
		ArrayJobID: j.number("array_job_id"),
		HetJobID:   j.number("het_job_id"), HetOffset: j.small("het_job_offset"), TRESReq: j.text("tres_req_str"),
		TRES: j.text("tres_alloc_str"),
		GRES: strings.ReplaceAll(j.text("tres_per_node"), "gres:", ""), StdOut: "/dev/null", StdErr: "/dev/null",
		StdIn: "/dev/null", SubmitHost: "localhost",
	}
	if r.TRES == "" {
		r.TRES = r.TRESReq
	}
	if r.MinMemory = j.number("memory_per_node"); r.MinMemory == 0 {
		r.MinMemory, r.MemoryPerCPU = j.number("memory_per_cpu"), true
	}
	if j["time_limit"] == nil {
		r.TimeLimit = -1
	}
	r.OverSubscribe = map[string]string{"none": "NO", "shared": "YES", "user": "USER", "mcs": "MCS"}[j.text("shared")]
	if r.ArrayTaskID = j.text("array_task_string"); r.ArrayTaskID == "" && j["array_task_id"] != nil {
		r.ArrayTaskID = strconv.FormatInt(j.number("array_task_id"), 10)
	}
	if r.HetJobID != 0 {
		r.HetJobSet = j.text("het_job_id_set")
	}
	code := j.number("exit_code")
	r.ExitCode, r.Signal = int32(code>>8), int32(code&0x7f)
	r.Scheduler, r.MailUser, r.MailType = show["Scheduler"], show["MailUser"], show["MailType"]
	if text, wait, ok := strings.Cut(show["Switches"], "@"); ok {
		n, _ := strconv.Atoi(text)
		r.Switches, r.SwitchesWait = int32(n), 300
		_ = wait
	}
	if n, err := strconv.ParseInt(show["CPUs/Task"], 10, 32); err == nil {
		r.CPUsPerTask = int32(n) // which --json does not have
	}
	return r
}

// rows returns the recorded jobs.
func (l *listing) rows() []status.Job {
	shown := map[string]map[string]string{}
	for _, c := range l.Calls {
		if c.Args[0] != "scontrol" || c.Args[1] != "-o" || c.Args[3] != "job" {
			continue
		}
		for line := range strings.SplitSeq(c.Out, "\n") {
			pairs := map[string]string{}
			for word := range strings.SplitSeq(line, " ") {
				if k, v, ok := strings.Cut(word, "="); ok && pairs[k] == "" {
					pairs[k] = v
				}
			}
			shown[pairs["JobId"]] = pairs
		}
	}
	var out []status.Job
	for _, j := range l.Jobs {
		id := strconv.FormatInt(slurmJob(j).number("job_id"), 10)
		out = append(out, slurmJob(j).row(shown[id]))
	}
	return out
}

// notCompared are columns whose values differ between the recorded cluster and
// this one.
var notCompared = map[string]bool{"AllocSID": true, "AssocID": true}

// TestSqueueAsSlurmPrintsIt compares every letter of -o and name of -O.
func TestSqueueAsSlurmPrintsIt(t *testing.T) {
	l := readListing(t)
	rows := l.rows()
	byID := map[string]*status.Job{}
	for i := range rows {
		byID[strconv.FormatInt(rows[i].ID, 10)] = &rows[i]
	}
	for _, c := range l.Calls {
		if c.Args[0] != "squeue" || len(c.Args) != 3 || !strings.Contains(c.Args[2], "|") {
			continue
		}
		var layout Layout[status.Job]
		var bad []string
		if c.Args[1] == "-o" {
			layout, bad = ParseLetters(JobColumns(), c.Args[2])
		} else {
			layout, bad = ParseNames(JobColumns(), c.Args[2])
			if name, _, _ := strings.Cut(strings.Split(c.Args[2], ",")[1], ":"); notCompared[name] {
				continue
			}
		}
		if (len(bad) > 0) != (c.Err != "") {
			t.Errorf("%q: bad %q, Slurm prints %q", c.Args[2], bad, c.Err)
			continue
		}
		for i, want := range strings.Split(strings.TrimSuffix(c.Out, "\n"), "\n") {
			var got, later string
			if i == 0 {
				got = string(layout.AppendHeader(nil))
			} else if row := byID[firstColumn(want)]; row != nil {
				got = string(layout.AppendRow(nil, row, &Settings{Now: c.Before, Cluster: "ref"}))
				later = string(layout.AppendRow(nil, row, &Settings{Now: c.After, Cluster: "ref"}))
			} else {
				t.Errorf("%q: no job in %q", c.Args[2], want)
				continue
			}
			want = strings.ReplaceAll(want, "\t", `\x09`)
			if want += "\n"; got != want && later != want && !strings.Contains(want, `with`) {
				t.Errorf("%q:\n  have %q\n  want %q", c.Args[2], got, want)
				break
			}
		}
	}
}

func firstColumn(line string) string {
	id, _, _ := strings.Cut(line, "|")
	return strings.TrimSpace(id)
}

// TestScontrolShowJobAsSlurmPrintsIt compares scontrol show job.
func TestScontrolShowJobAsSlurmPrintsIt(t *testing.T) {
	l := readListing(t)
	rows := l.rows()
	sid := regexp.MustCompile(`AllocNode:Sid=\S+|CPU_IDs=.*|JOB_GRES=.*|Licenses=\S*`)
	for _, c := range l.Calls {
		if c.Args[0] != "scontrol" || !slices.Contains(c.Args, "job") {
			continue
		}
		oneLine, details := slices.Contains(c.Args, "-o"), strings.Contains(c.Args[1], "-d")
		var got, later []byte
		for _, id := range recordIDs.FindAllStringSubmatch(c.Out, -1) {
			for i := range rows {
				if itoa(rows[i].ID) == id[1] {
					got = JobRecord(&rows[i], &Settings{Now: c.Before, Details: details}).Append(got, oneLine)
					later = JobRecord(&rows[i], &Settings{Now: c.After, Details: details}).Append(later, oneLine)
				}
			}
		}
		clean := func(text string) string {
			var out []string
			for line := range strings.SplitSeq(sid.ReplaceAllString(text, ""), "\n") {
				if details && strings.Contains(line, "  Nodes=") {
					continue
				}
				out = append(out, strings.ReplaceAll(line, "\t", `\x09`))
			}
			return strings.Join(out, "\n")
		}
		want := clean(c.Out)
		if clean(string(got)) != want && clean(string(later)) != want {
			t.Errorf("%q:\n%s\nwant\n%s", c.Args, diff(clean(string(got)), want), "")
		}
	}
}

var recordIDs = regexp.MustCompile(`(?m)^JobId=([0-9]+)`)

// diff returns the lines that differ.
func diff(have, want string) string {
	var b strings.Builder
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(h), len(w)) {
		var x, y string
		if i < len(h) {
			x = h[i]
		}
		if i < len(w) {
			y = w[i]
		}
		if x != y {
			b.WriteString("have " + x + "\nwant " + y + "\n")
		}
	}
	return b.String()
}

// TestSortAsSlurmSorts compares the order of squeue -S. The order of equal jobs is
// not defined in Slurm, so only the columns of the order are compared.
func TestSortAsSlurmSorts(t *testing.T) {
	l := readListing(t)
	rows := l.rows()
	byID := map[string]*status.Job{}
	for i := range rows {
		byID[itoa(rows[i].ID)] = &rows[i]
	}
	for _, c := range l.Calls {
		if c.Args[0] != "squeue" || len(c.Args) != 6 || c.Args[2] != "-S" || c.Args[3] == "-S,j" {
			continue
		}
		letters := strings.NewReplacer("-", "", ",", "|%").Replace(c.Args[3])
		layout, _ := ParseLetters(JobColumns(), "%"+letters)
		var have, want []string
		s := &Settings{Now: c.Before}
		for _, row := range SortJobsAt(rows, c.Args[3], s) {
			have = append(have, string(layout.AppendRow(nil, row, s)))
		}
		for id := range strings.SplitSeq(strings.TrimSuffix(c.Out, "\n"), "\n") {
			want = append(want, string(layout.AppendRow(nil, byID[id], s)))
		}
		if !slices.Equal(have, want) {
			t.Errorf("-S %s:\n%q, want\n%q", c.Args[3], have, want)
		}
	}
}

// TestScontrolShowNodeAsSlurmPrintsIt compares scontrol show node and partition.
func TestScontrolShowNodeAsSlurmPrintsIt(t *testing.T) {
	l := readListing(t)
	nodes := l.nodeRows()
	varying := regexp.MustCompile(`(CPUAlloc|CPULoad|AllocMem|FreeMem|State|LastBusyTime|AllocTRES|GresUsed|JobDefaults|OS)=[^\n]*?( |\n|$)`)
	for _, c := range l.Calls {
		if c.Args[0] != "scontrol" || slices.Contains(c.Args, "job") {
			continue
		}
		s := &Settings{Now: c.Before, Details: slices.Contains(c.Args, "-d")}
		oneLine := slices.Contains(c.Args, "-o")
		var got []byte
		if slices.Contains(c.Args, "node") {
			for i := range nodes {
				got = NodeRecord(&nodes[i], s).Append(got, oneLine)
			}
		} else {
			for i := range recordedPartitions {
				got = PartitionRecord(&recordedPartitions[i], nodes).Append(got, oneLine)
			}
		}
		have, want := varying.ReplaceAllString(string(got), "$1="), varying.ReplaceAllString(c.Out, "$1=")
		if have != want {
			t.Errorf("%q:\n%s", c.Args, diff(have, want))
		}
	}
}
