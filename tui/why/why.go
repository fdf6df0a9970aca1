// Package why explains in sentences why a job is pending: what it waits for, what is
// missing, what will release it and when, and what its user can do. It is pure: rows
// of the queue and of the nodes go in, sentences come out.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Facts are the rows from which an answer is made.
type Facts struct {
	Job     status.Job
	Running []status.Job // jobs that hold nodes, in any order
	Others  []status.Job // jobs that the job depends on, as far as they are known
	// Ahead is the number of pending jobs of its partitions with a higher priority;
	// First is the one with the highest priority.
	Ahead      int
	First      status.Job
	Nodes      []status.Node
	Partitions []status.Partition
	Now        int64 // Unix seconds
	Location   *time.Location
}

// Answer explains why a job is pending.
type Answer struct {
	Category Category
	Summary  string   // one sentence
	Missing  []string // what it needs, and what the nodes have
	Release  []string // what will release resources, and when
	Action   string   // what its user can do; empty: wait
}

// Category is the kind of an answer.
type Category string

// The categories.
const (
	Resources  Category = "resources"  // not enough free resources
	Turn       Category = "turn"       // jobs of a higher priority are first
	Limits     Category = "limits"     // a limit of the partition, QOS or account
	You        Category = "you"        // the user asked for it
	Dependency Category = "dependency" // other jobs
	Site       Category = "site"       // the state of the cluster, or an administrator
	Impossible Category = "impossible" // it can never start
)

// reasonAnswers are the answers for reasons that need no facts. %d is the job's id.
var reasonAnswers = map[string]Answer{
	"JobHeldUser": {
		Category: You, Summary: "It is held: its user held it or submitted it with --hold.",
		Action: "Release it: scontrol release %d",
	},
	"JobHeldAdmin": {
		Category: Site, Summary: "An administrator holds it.",
		Action: "Ask the administrators; only they can release it.",
	},
	"PartitionDown": {
		Category: Site, Summary: "Its partition is down: nothing starts there.",
		Action: "Wait until it is up, or move the job: scontrol update JobId=%d Partition=...",
	},
	"PartitionInactive": {
		Category: Site, Summary: "Its partition is inactive: nothing starts there.",
		Action: "Wait until it is up, or move the job: scontrol update JobId=%d Partition=...",
	},
	"PartitionTimeLimit": {
		Category: Limits, Summary: "Its time limit is longer than its partition allows.",
		Action: "Lower it: scontrol update JobId=%d TimeLimit=...",
	},
	"PartitionNodeLimit": {
		Category: Limits, Summary: "It requests more or fewer nodes than its partition allows.",
		Action: "Change it: scontrol update JobId=%d NumNodes=...",
	},
	"ReqNodeNotAvail": {
		Category: Site, Summary: "Nodes that it requests are down, drained or reserved.",
		Action: "Request other nodes, or wait until they are back.",
	},
	nodesDown: {
		Category: Site, Summary: "Too many of the nodes that could run it are down, drained or reserved.",
		Action: "Request fewer nodes, or wait until they are back.",
	},
	"BadConstraints": {
		Category: Impossible, Summary: "No node of its partition can ever provide what it requests.",
		Action: "Cancel it and submit it with smaller or other requests: scancel %d",
	},
	"DependencyNeverSatisfied": {
		Category: Impossible, Summary: "What it depends on can no longer happen.",
		Action: "Cancel it: scancel %d, or change it: scontrol update JobId=%d Dependency=...",
	},
	"DeadLine": {
		Category: Impossible, Summary: "It can no longer end before its deadline.",
		Action: "Cancel it, or move the deadline.",
	},
	"JobArrayTaskLimit": {
		Category: You, Summary: "As many tasks of its array are running as it allows.",
		Action: "Raise the limit: scontrol update JobId=%d ArrayTaskThrottle=...",
	},
	"Licenses": {
		Category: Resources, Summary: "Licenses that it requests are in use.",
	},
	"Reservation": {
		Category: Site, Summary: "Its reservation has not begun.",
	},
	"Prolog": {
		Category: Resources, Summary: "Its nodes are being prepared.",
	},
	"JobLaunchFailure": {
		Category: Site, Summary: "It could not be started and waits for another attempt.",
	},
}

// nodesDown is the start of the reason of a job that needs nodes which are down.
const nodesDown = "Nodes required for job are DOWN"

// Explain explains why the job is pending.
func Explain(f *Facts) Answer {
	reason, _, _ := strings.Cut(f.Job.Reason, ",")
	reason = strings.TrimSpace(reason)
	var a Answer
	switch reason {
	case "", status.ReasonNone, status.ReasonResources, status.ReasonPriority, status.ReasonLicenses:
		a = f.resourcesAnswer(reason)
	case status.ReasonDependency:
		a = f.dependencyAnswer()
	case status.ReasonBeginTime:
		a = Answer{Category: You, Summary: "It asked to begin " + f.formatTime(f.Job.Eligible) + ".",
			Action: fmt.Sprintf("To begin earlier: scontrol update JobId=%d StartTime=now", f.Job.ID)}
		if f.Job.Eligible == 0 {
			a.Summary = "It asked to begin later, or its last run failed and it is retried after a delay."
		}
	default:
		var known bool
		if a, known = reasonAnswers[reason]; !known {
			a = limitAnswer(reason)
		}
		if n := strings.Count(a.Action, "%d"); n > 0 {
			a.Action = strings.ReplaceAll(a.Action, "%d", strconv.FormatInt(f.Job.ID, 10))
		}
	}
	if reason == "BadConstraints" || reason == "ReqNodeNotAvail" || reason == nodesDown {
		a.Missing = f.missing()
	}
	if f.Job.Message != "" {
		a.Missing = append(a.Missing, "The scheduler says: "+printable.Escape(f.Job.Message))
	}
	if f.Job.Start > 0 && f.Job.PlannedNodes != "" && len(a.Release) == 0 && reason != "BeginTime" {
		a.Release = f.planText()
	}
	return a
}

// limitAnswer is the answer for the many reasons that name a limit of a QOS or an
// association: QOSMaxJobsPerUserLimit, AssocGrpCPULimit, MaxMemPerLimit.
func limitAnswer(reason string) Answer {
	a := Answer{Category: Site, Summary: "The scheduler gives the reason " + printable.Escape(reason) + "."}
	whose := "a limit"
	switch r := status.Reason(reason); {
	case r.IsQOSLimit():
		whose = "a limit of its QOS"
	case r.IsAssociationLimit():
		whose = "a limit of its account"
	case !strings.Contains(reason, "Limit"):
		return a
	}
	a.Category = Limits
	a.Summary = fmt.Sprintf("It would exceed %s (%s).", whose, printable.Escape(reason))
	a.Action = "Wait until other jobs under the limit end, or request less. " +
		"sacctmgr show assoc and sacctmgr show qos show the limits."
	return a
}

// resourcesAnswer returns the answer for a job that waits for resources or its turn.
func (f *Facts) resourcesAnswer(reason string) Answer {
	a := Answer{
		Category: Resources,
		Summary:  "It is next, and waits for resources.",
		Missing:  f.missing(),
		Release:  f.planText(),
	}
	switch {
	case reason == status.ReasonLicenses:
		a.Summary = "Licenses that it requests are in use: " + printable.Escape(f.Job.Licenses) + "."
	case reason == status.ReasonPriority && f.Ahead > 0:
		a.Category = Turn
		a.Summary = fmt.Sprintf("It waits for its turn: %s of its partition %s a higher priority.",
			jobCount(f.Ahead), have(f.Ahead))
		if f.First.ID != 0 {
			a.Missing = append(a.Missing, fmt.Sprintf("First in line: %s of %s, priority %d; this one has %d.",
				format.JobID(&f.First), printable.Escape(f.First.User), f.First.Priority, f.Job.Priority))
		}
	case reason == status.ReasonPriority:
		a.Category = Turn
		a.Summary = "It waits for its turn: jobs before it have a higher priority or wait for the same nodes."
	case reason == "" || reason == status.ReasonNone:
		a.Summary = "The scheduler has not considered it yet."
	}
	if f.Job.TimeLimit < 0 || f.Job.TimeLimit > 24*60 {
		a.Action = fmt.Sprintf("With a shorter time limit it may start earlier: scontrol update JobId=%d TimeLimit=...",
			f.Job.ID)
	}
	return a
}

func jobCount(n int) string {
	if n == 1 {
		return "1 job"
	}
	return strconv.Itoa(n) + " jobs"
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// dependencyAnswer returns the answer for a job that waits for other jobs.
func (f *Facts) dependencyAnswer() Answer {
	a := Answer{Category: Dependency, Summary: "It waits for other jobs."}
	words := map[string]string{
		"afterok": "to succeed", "afterany": "to end", "afternotok": "to fail", "after": "to start",
		"aftercorr": "task by task, to succeed", "afterburstbuffer": "to end",
	}
	for term := range strings.FieldsFuncSeq(f.Job.Dependency, func(r rune) bool { return r == ',' || r == '?' }) {
		term, _, _ = strings.Cut(term, "(")
		kind, id, _ := strings.Cut(term, ":")
		if kind == "singleton" {
			a.Missing = append(a.Missing, "Only one job with this name and user runs at a time.")
			continue
		}
		what, ok := words[kind]
		if !ok {
			what = "(" + printable.Escape(kind) + ")"
		}
		a.Missing = append(a.Missing, fmt.Sprintf("for %s %s%s", printable.Escape(id), what, f.dependencyState(id)))
	}
	if len(a.Missing) == 1 && strings.HasPrefix(a.Missing[0], "for ") {
		a.Summary = "It waits " + a.Missing[0] + "."
	}
	return a
}

// dependencyState returns the known state of a job that this one depends on.
func (f *Facts) dependencyState(id string) string {
	id, _, _ = strings.Cut(id, "+")
	j := f.find(func(j *status.Job) bool { return format.JobID(j) == id })
	if j == nil {
		id, _, _ = strings.Cut(id, "_") // a pending task has no row of its own
		j = f.find(func(j *status.Job) bool {
			return strconv.FormatInt(j.ID, 10) == id || strconv.FormatInt(j.ArrayJobID, 10) == id
		})
	}
	if j == nil {
		return ""
	}
	text := ": it is " + j.State
	if j.State == "RUNNING" && j.End > 0 {
		text += ", and ends " + f.formatTime(j.End) + " at the latest"
	} else if j.State == "PENDING" && j.Start > 0 {
		text += ", and should start " + f.formatTime(j.Start)
	}
	return text
}

// find returns the first of Others and Running for which is holds, nil if there is none.
func (f *Facts) find(is func(*status.Job) bool) *status.Job {
	for _, list := range [][]status.Job{f.Others, f.Running} {
		if i := slices.IndexFunc(list, func(j status.Job) bool { return is(&j) }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// formatTime returns an instant in words: at 14:02 (in 1:02:00).
func (f *Facts) formatTime(unix int64) string {
	if unix == 0 {
		return "later"
	}
	loc := f.Location
	if loc == nil {
		loc = time.UTC
	}
	at, now := time.Unix(unix, 0).In(loc), time.Unix(f.Now, 0).In(loc)
	text := "at " + at.Format("15:04")
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		text = "on " + at.Format("Mon 2 Jan 15:04")
	}
	if unix > f.Now {
		text += " (in " + string(format.AppendDuration(nil, unix-f.Now)) + ")"
	}
	return text
}

// planText returns when and where the job should start, and which jobs are there
// until then.
func (f *Facts) planText() []string {
	if f.Job.Start == 0 {
		return []string{"No start is planned yet: too many jobs before it have no known end."}
	}
	out := []string{"It should start " + f.formatTime(f.Job.Start) + ", or earlier if jobs end before their limit."}
	if f.Job.PlannedNodes == "" {
		return out
	}
	out[0] = fmt.Sprintf("It should start %s on %s, or earlier if jobs end before their limit.",
		f.formatTime(f.Job.Start), printable.Escape(f.Job.PlannedNodes))
	return append(out, f.holders()...)
}

// maxHolders bounds the jobs that are named.
const maxHolders = 5

// holders returns the running jobs on the planned nodes. The one that ends last comes
// first: the start waits for it.
func (f *Facts) holders() []string {
	planned := expand(f.Job.PlannedNodes)
	var there []*status.Job
	for i := range f.Running {
		j := &f.Running[i]
		if slices.ContainsFunc(expand(j.NodeList), func(n string) bool { return slices.Contains(planned, n) }) {
			there = append(there, j)
		}
	}
	slices.SortFunc(there, func(a, b *status.Job) int {
		return cmp.Or(cmp.Compare(f.endBeforeStart(b), f.endBeforeStart(a)), format.CompareID(a, b))
	})
	var out []string
	for i, j := range there {
		if i == maxHolders {
			out = append(out, fmt.Sprintf("... and %d more jobs there.", len(there)-i))
			break
		}
		end := "without a time limit"
		if j.End > 0 && j.TimeLimit >= 0 {
			end = "until " + strings.TrimPrefix(
				strings.TrimPrefix(f.formatTime(j.End), "at "),
				"on ",
			) + " at the latest"
		}
		out = append(out, fmt.Sprintf("%s has %s %s (%s).",
			format.JobID(j), printable.Escape(j.NodeList), end, printable.Escape(j.User)))
	}
	return out
}

// endBeforeStart returns when a running job ends, or 0 if that is after the planned
// start.
func (f *Facts) endBeforeStart(j *status.Job) int64 {
	if j.End > f.Job.Start || j.End == 0 || j.TimeLimit < 0 {
		return 0 // the start does not wait for it
	}
	return j.End
}

// maxNodes bounds the expansion of a host list.
const maxNodes = 1 << 16

// expand returns the nodes of a host list, none if it is invalid or too long.
func expand(list string) []string {
	if list == "" {
		return nil
	}
	out, err := hostlist.Expand(list)
	if err != nil || len(out) > maxNodes {
		return nil
	}
	return out
}
