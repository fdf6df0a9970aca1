// Package why says in words why a job is pending: what it waits for, what is
// missing, what will free it and when, and what its user can do. It is pure:
// rows of the queue and of the nodes go in, sentences come out.
package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Facts are what an answer is made of.
type Facts struct {
	Job     status.Job
	Running []status.Job // jobs that hold nodes, in any order
	Others  []status.Job // jobs that the job depends on, as far as known
	// Ahead is how many pending jobs of its partitions have a higher priority;
	// First is the one with the highest.
	Ahead      int
	First      status.Job
	Nodes      []status.Node
	Partitions []status.Partition
	Now        int64 // Unix seconds
	Location   *time.Location
}

// Answer is why a job waits.
type Answer struct {
	Category string   // resources, turn, limits, you, dependency, site, impossible
	Summary  string   // one sentence
	Missing  []string // what it needs and what there is
	Release  []string // what will make room, and when
	Action   string   // what its user can do; empty: wait
}

// kinds are the reasons whose sentence needs nothing but themselves.
var reasonAnswers = map[string]Answer{
	"JobHeldUser":              {"you", "It is held by its user or by who submitted it with --hold.", nil, nil, "Release it: scontrol release %d"},
	"JobHeldAdmin":             {"site", "An administrator holds it.", nil, nil, "Ask the administrators; only they can release it."},
	"PartitionDown":            {"site", "Its partition is down: nothing starts there.", nil, nil, "Wait until it is up, or move the job: scontrol update JobId=%d Partition=..."},
	"PartitionInactive":        {"site", "Its partition is inactive: nothing starts there.", nil, nil, "Wait until it is up, or move the job: scontrol update JobId=%d Partition=..."},
	"PartitionTimeLimit":       {"limits", "Its time limit is longer than its partition allows.", nil, nil, "Lower it: scontrol update JobId=%d TimeLimit=..."},
	"PartitionNodeLimit":       {"limits", "It wants more or fewer nodes than its partition allows.", nil, nil, "Change it: scontrol update JobId=%d NumNodes=..."},
	"ReqNodeNotAvail":          {"site", "Nodes that it asks for are down, drained or reserved.", nil, nil, "Ask for other nodes, or wait until they are back."},
	nodesDown:                  {"site", "Too many of the nodes that could run it are down, drained or reserved.", nil, nil, "Ask for fewer nodes, or wait until they are back."},
	"BadConstraints":           {"impossible", "No node of its partition can ever give what it asks for.", nil, nil, "Cancel it and submit it with smaller or other requests: scancel %d"},
	"DependencyNeverSatisfied": {"impossible", "What it depends on can no longer happen.", nil, nil, "Cancel it: scancel %d, or change it: scontrol update JobId=%d Dependency=..."},
	"DeadLine":                 {"impossible", "It can no longer end before its deadline.", nil, nil, "Cancel it, or move the deadline."},
	"JobArrayTaskLimit":        {"you", "As many tasks of its array run as it allows at a time.", nil, nil, "Raise the limit: scontrol update JobId=%d ArrayTaskThrottle=..."},
	"Licenses":                 {"resources", "Licenses that it wants are in use.", nil, nil, ""},
	"Reservation":              {"site", "Its reservation has not begun.", nil, nil, ""},
	"Prolog":                   {"resources", "Its nodes are being made ready.", nil, nil, ""},
	"JobLaunchFailure":         {"site", "It could not be started and waits for another try.", nil, nil, ""},
}

// nodesDown is how the reason of a job begins for which too many nodes are away.
const nodesDown = "Nodes required for job are DOWN"

// Explain answers why the job is pending.
func Explain(f *Facts) Answer {
	reason, _, _ := strings.Cut(f.Job.Reason, ",")
	reason = strings.TrimSpace(reason)
	var a Answer
	switch reason {
	case "", "None", "Resources", "Priority", "Licenses":
		a = f.resourcesAnswer(reason)
	case "Dependency":
		a = f.dependencyAnswer()
	case "BeginTime":
		a = Answer{Category: "you", Summary: "It asked to begin " + f.formatTime(f.Job.Eligible) + ".",
			Action: fmt.Sprintf("To begin earlier: scontrol update JobId=%d StartTime=now", f.Job.ID)}
		if f.Job.Eligible == 0 {
			a.Summary = "It asked to begin later, or its last run failed and it rests a while."
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
		a.Missing = append(a.Missing, "The scheduler says: "+format.Escape(f.Job.Message))
	}
	if f.Job.Start > 0 && len(a.Release) == 0 && reason != "BeginTime" {
		a.Release = f.planText()
	}
	return a
}

// limit is the answer for the many reasons that name a limit of a QOS or an
// association: QOSMaxJobsPerUserLimit, AssocGrpCPULimit, MaxMemPerLimit.
func limitAnswer(reason string) Answer {
	a := Answer{Category: "site", Summary: "The scheduler gives the reason " + format.Escape(reason) + "."}
	if !strings.HasPrefix(reason, "QOS") && !strings.HasPrefix(reason, "Assoc") && !strings.Contains(reason, "Limit") {
		return a
	}
	a.Category = "limits"
	whose := "a limit"
	switch {
	case strings.HasPrefix(reason, "QOS"):
		whose = "a limit of its QOS"
	case strings.HasPrefix(reason, "Assoc"):
		whose = "a limit of its account"
	}
	a.Summary = fmt.Sprintf("It would go over %s (%s).", whose, format.Escape(reason))
	a.Action = "Wait for other jobs under the limit to end, or ask for less. sacctmgr show assoc, sacctmgr show qos tell the limits."
	return a
}

// resources is the answer for a job that waits for room or its turn.
func (f *Facts) resourcesAnswer(reason string) Answer {
	a := Answer{Category: "resources", Summary: "It is next, and waits for room.", Missing: f.missing(), Release: f.planText()}
	switch {
	case reason == "Licenses":
		a.Summary = "Licenses that it wants are in use: " + format.Escape(f.Job.Licenses) + "."
	case reason == "Priority" && f.Ahead > 0:
		a.Category = "turn"
		a.Summary = fmt.Sprintf("It waits for its turn: %s of its partition %s a higher priority.", jobCount(f.Ahead), have(f.Ahead))
		if f.First.ID != 0 {
			a.Missing = append(a.Missing, fmt.Sprintf("First in line: %s of %s, priority %d; this one has %d.",
				format.JobID(&f.First), format.Escape(f.First.User), f.First.Priority, f.Job.Priority))
		}
	case reason == "Priority":
		a.Category = "turn"
		a.Summary = "It waits for its turn: jobs before it have a higher priority or wait for the same nodes."
	case reason == "" || reason == "None":
		a.Summary = "The scheduler has not looked at it yet."
	}
	if f.Job.TimeLimit < 0 || f.Job.TimeLimit > 24*60 {
		a.Action = fmt.Sprintf("A shorter time limit may let it start earlier: scontrol update JobId=%d TimeLimit=...", f.Job.ID)
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

// dependency is the answer for a job that waits for others.
func (f *Facts) dependencyAnswer() Answer {
	a := Answer{Category: "dependency", Summary: "It waits for other jobs."}
	words := map[string]string{
		"afterok": "to succeed", "afterany": "to end", "afternotok": "to fail", "after": "to start", "aftercorr": "task by task, to succeed", "afterburstbuffer": "to end",
	}
	for term := range strings.FieldsFuncSeq(f.Job.Dependency, func(r rune) bool { return r == ',' || r == '?' }) {
		term, _, _ = strings.Cut(term, "(")
		kind, id, _ := strings.Cut(term, ":")
		if kind == "singleton" {
			a.Missing = append(a.Missing, "Of jobs with its name and user only one runs at a time.")
			continue
		}
		what, ok := words[kind]
		if !ok {
			what = "(" + format.Escape(kind) + ")"
		}
		a.Missing = append(a.Missing, fmt.Sprintf("for %s %s%s", format.Escape(id), what, f.dependencyState(id)))
	}
	if len(a.Missing) == 1 {
		a.Summary = "It waits " + a.Missing[0] + "."
	}
	return a
}

// stateOf tells what is known of a job that is depended on.
func (f *Facts) dependencyState(id string) string {
	id, _, _ = strings.Cut(id, "_")
	id, _, _ = strings.Cut(id, "+")
	for _, list := range [][]status.Job{f.Others, f.Running} {
		for i := range list {
			j := &list[i]
			if strconv.FormatInt(j.ID, 10) != id && strconv.FormatInt(j.ArrayJobID, 10) != id {
				continue
			}
			text := ": it is " + j.State
			if j.State == "RUNNING" && j.End > 0 {
				text += ", and ends " + f.formatTime(j.End) + " at the latest"
			} else if j.State == "PENDING" && j.Start > 0 {
				text += ", and should start " + f.formatTime(j.Start)
			}
			return text
		}
	}
	return ""
}

// when is an instant in words: at 14:02 (in 1:02:00).
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

// plan says when and where the job should start, and who is there until then.
func (f *Facts) planText() []string {
	if f.Job.Start == 0 {
		return []string{"No start is planned yet: too much of what is before it has no known end."}
	}
	out := []string{"It should start " + f.formatTime(f.Job.Start) + ", or earlier if jobs end before their limit."}
	if f.Job.PlannedNodes == "" {
		return out
	}
	out[0] = fmt.Sprintf("It should start %s on %s, or earlier if jobs end before their limit.", f.formatTime(f.Job.Start), format.Escape(f.Job.PlannedNodes))
	return append(out, f.holders()...)
}

// mostHolders are named; of more only the number is told.
const maxHolders = 5

// holders are the running jobs on the planned nodes, the last to end first:
// that is the one that the start waits for.
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
		if x, y := f.endBeforeStart(a), f.endBeforeStart(b); x != y {
			return int(min(1, max(-1, y-x)))
		}
		return format.CompareID(a, b)
	})
	var out []string
	for i, j := range there {
		if i == maxHolders {
			out = append(out, fmt.Sprintf("... and %d more jobs there.", len(there)-i))
			break
		}
		end := "without a time limit"
		if j.End > 0 && j.TimeLimit >= 0 {
			end = "until " + strings.TrimPrefix(strings.TrimPrefix(f.formatTime(j.End), "at "), "on ") + " at the latest"
		}
		out = append(out, fmt.Sprintf("%s holds %s %s (%s).", format.JobID(j), format.Escape(j.NodeList), end, format.Escape(j.User)))
	}
	return out
}

// holds is when a running job ends, among those that end by the planned start.
func (f *Facts) endBeforeStart(j *status.Job) int64 {
	if j.End > f.Job.Start || j.End == 0 || j.TimeLimit < 0 {
		return 0 // it stays: the start does not wait for it
	}
	return j.End
}

// mostNodes bounds what a list of nodes is expanded to.
const maxNodes = 1 << 16

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
