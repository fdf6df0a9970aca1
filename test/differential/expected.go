package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// intended are the differences that Berth makes on purpose, by the row of
// docs/what-is-different.md that names them. signature matches that of a cause, and call
// its shortest command line; nil matches every one.
var intended = []struct {
	row             string
	signature, call *regexp.Regexp
}{
	{"Options without effect", regexp.MustCompile(
		`has (no|V) effect|is not possible here|is ignored: only an operator`), nil},
	{"Options without effect", nil, regexp.MustCompile(`(\\n|")#(PBS|BSUB)`)},
	{"Options without effect", regexp.MustCompile(`show out: (NumCPUs|NumTasks|TRES|Socks/Node|ReqB:S:C:T)=|extra`),
		regexp.MustCompile(`--extra[ =]`)},
	{"Help and verbose output", regexp.MustCompile(
		`err:  ≠ sbatch: (convert it: |warning: line N: .* ignored)`), nil},
	{"Planned starts", regexp.MustCompile(`when it starts cannot be foreseen|cannot be predicted \(DeadLine\)`), nil},
	{"Wrong values", regexp.MustCompile(`≠ .*(there is no type|Invalid --(signal|open-mode) spec|value "" for)`), nil},
	{"Wrong values", regexp.MustCompile(`≠ Invalid time specification`), regexp.MustCompile(`(Start|End)=( |'|$)`)},
	{"Wrong values", regexp.MustCompile(`ExcNodeList= `), nil},
	{"Wrong values", regexp.MustCompile(`show out: (NumCPUs|NumTasks|TRES|Socks/Node)=|PerSocket=`),
		regexp.MustCompile(`-B ?'?0|--extra-node\S*[ =]0`)},
	{"Wrong values", regexp.MustCompile(`≠ No changes specified`), regexp.MustCompile(`^scontrol update`)},
	{"Accounts and users", regexp.MustCompile(`show out: (TimeLimit|TimeMin|EndTime)=`),
		regexp.MustCompile(`(?i)fast`)},
	{"Planned starts", regexp.MustCompile(`show out: Reason=None ≠ Reason=BeginTime`), nil},
	{"`scontrol update` of a size", regexp.MustCompile(`show out: (NumCPUs|NumTasks|TRES)=`),
		regexp.MustCompile(`(cores|sockets)-per|--nodes?[= ]0|-N ?0`)},
	{"Reservations", regexp.MustCompile(`≠ .*Requested reservation is invalid|Reservation=later ≠`),
		regexp.MustCompile(`later,later`)},
	{"`scontrol update` of a size", regexp.MustCompile(`show out: (NumNodes=|TRES=.*mem=NM.* ≠ TRES=cpu=N,node)`), nil},
	{"Several partitions", regexp.MustCompile(`show out: Partition=`), regexp.MustCompile(`debug.*debug|batch.*batch`)},
	{"Wrong values", regexp.MustCompile(`Requested time limit is invalid`), regexp.MustCompile(`--deadline.now`)},
	{"Accounts and users", regexp.MustCompile(
		`users are User objects|err: .* ≠ .*Invalid (account|qos)`), nil},
	{"Binding", regexp.MustCompile(`lacks support for cpu binding`), nil},
	{"Arrays", regexp.MustCompile(`ArrayTaskThrottle=N ≠ *$`), nil},
	{"Wrong values", regexp.MustCompile(
		`(Comment|Licenses|ReqNodeList|NodeList|Features|MCS_label|QOS|Prefer|StdOut|StdErr)=`),
		regexp.MustCompile(`(?i)=,?( |'|$)|''|(-[wx]|list) ?,`)},
	{"Wrong values", regexp.MustCompile(`Invalid \w+ value`), regexp.MustCompile(`^scontrol update`)},
	{"`scontrol update` of a size", regexp.MustCompile(
		`show out: (NumCPUs|NumTasks|NumNodes|MinCPUsNode|TRES|ReqB:S:C:T|Socks/Node)=`),
		regexp.MustCompile(`^scontrol update`)},
	{"`scontrol update` of a size", regexp.MustCompile(
		`Requested (node|partition) configuration (is )?not available`), regexp.MustCompile(`^scontrol update`)},
	{"Several partitions", regexp.MustCompile(`(TimeLimit|EndTime)=`), regexp.MustCompile(`(?i)partition|-p`)},
	{"Planned starts", regexp.MustCompile(`start=`), regexp.MustCompile(`^squeue`)},
	{"Planned starts", regexp.MustCompile(`to start at .* to start at `), nil},
	{"Wrong values", regexp.MustCompile(`≠ (Invalid job state specified: (V|COMPLETED)|Unrecognized SCANCEL_STATE)`), nil},
	{"Wrong values", regexp.MustCompile(`show out: (JobState|StartTime|EndTime)=`),
		regexp.MustCompile(`(?i)^scancel.* (--state|-t) ?=?\S*completed`)},
	{"Wrong values", regexp.MustCompile(`≠ scancel: error: Invalid node list`), nil},
	{"Signals and the end of input", regexp.MustCompile(`show out: Switches=`),
		regexp.MustCompile(`(?i)^scontrol update.* switches=\d+( |$)`)},
	{"Several partitions", regexp.MustCompile(`show out: Partition=`),
		regexp.MustCompile(`(debug|batch),( |'|$)|[ =',],(debug|batch)`)},
	{"Planned starts", regexp.MustCompile(`(?i)format=.*(%y|schednodes|pendingtime)`), squeueCall},
	{"Accounts and users", regexp.MustCompile(`(?i)^sacctmgr out .*format==(.*,)?i?d\b`), nil},
	{"Planned starts", regexp.MustCompile(`^sacct out .*flags`), nil},
	{"Planned starts", regexp.MustCompile(`^sacct out format=(.*,)?reason`), nil},
	{"Wrong values", regexp.MustCompile(`show out: (NumCPUs|NumTasks|TRES)=`),
		regexp.MustCompile(`((--nodel(i|is|ist)?|NODELIST)[ =]?|-w ?)(''|,)( |$)|(--nodel(i|is|ist)?|NODELIST)=( |$)`)},
	{"Wrong values", regexp.MustCompile(`≠ sreport: error: Invalid value for TopCount`), nil},
	{"Wrong values", regexp.MustCompile(`≠ (scancel: error: N is not a signal|Unknown job signal: V)`), nil},
	{"Planned starts", regexp.MustCompile(`TimeLimit=N-N:N:N ≠ TimeLimit=UNLIMITED`), nil},
	{"Signals and the end of input", regexp.MustCompile(
		`Job can not be altered now, try again later|exit: exit -N ≠ exit N`),
		regexp.MustCompile(`^(SC\S+ )?scancel.* -(s|-si)`)},
	{"Signals and the end of input", regexp.MustCompile(`^sacct out ncpus=`), nil},
	{"Signals and the end of input", regexp.MustCompile(`configuration is not available ≠ s\w+: `),
		regexp.MustCompile(`test-only.*contig.*(-w|--nodel)|test-only.*(-w|--nodel).*contig`)},
	{"Signals and the end of input", regexp.MustCompile(`^sprio out sibling= weights=`), nil},
	{"Nodes and daemons", regexp.MustCompile(`^sinfo out format=.*(%n|%o)`), nil}, // names of the machine
	{"Arrays", regexp.MustCompile(`^squeue out .*jobs=\{array\}_\[`), nil},
	{"Accounts and users", regexp.MustCompile(`(?i)^(sshare out format=id|sacct out format=(qosraw|associd))`), nil},
}

// squeueCall matches a call of squeue, with variables or without.
var squeueCall = regexp.MustCompile(`(^| )squeue`)

// ofSize is the row about changes of jobs.
const ofSize = "`scontrol update` of a size"

// wrongValue matches what Berth's scontrol says about a value that Slurm ignores, or of which
// it reads the beginning.
var wrongValue = regexp.MustCompile(
	`Nice value out of range|Node count specification invalid|Invalid (time specification|\w+ value|numeric value|TimeLimit increment)|is not an absolute path`)

// refusedName matches what Berth says about an account, a QOS or a reservation that Slurm ignores.
var refusedName = regexp.MustCompile(`Invalid (account|qos)|Requested reservation is invalid`)

// noNode matches what Berth says about a job that fits no node.
var noNode = regexp.MustCompile(`Requested (node|partition) configuration`)

// updateRow returns the row about an example of scontrol update, of which only Berth refuses
// the value, or which both refuse, but Slurm after some changes.
func updateRow(e *example) string {
	if e.call.kind != change || !strings.HasPrefix(e.call.String(), "scontrol update") {
		return ""
	}
	says := func(text *regexp.Regexp) bool {
		return slices.ContainsFunc(e.berth, func(l line) bool { return l.where == "err" && text.MatchString(l.text) })
	}
	slurm, berth := refuses(e.slurm), refuses(e.berth)
	switch {
	case slurm && berth && strings.HasPrefix(e.difference.where, "show"):
		return ofSize
	case berth && says(wrongValue):
		return "Wrong values"
	case berth && !slurm && says(refusedName) && strings.HasPrefix(e.difference.where, "show"):
		return ofSize
	case berth && !slurm && says(noNode):
		return ofSize
	}
	return ""
}

// yearLimit matches the time limit that Slurm's backfill scheduler gives to a job without one.
var yearLimit = regexp.MustCompile(`\b365-0[0-9:]*\+?`)

// limitRow returns the row about jobs without a time limit, if a list differs only in theirs.
func limitRow(e *example) string {
	if e.call.kind != query {
		return ""
	}
	unlimited := func(lines []line) []line {
		out := slices.Clone(lines)
		for i := range out {
			text := yearLimit.ReplaceAllString(out[i].text, "UNLIMITED")
			out[i].text = strings.TrimSpace(maskSpaces.ReplaceAllString(text, " "))
		}
		return out
	}
	if len(differences(unlimited(e.slurm), unlimited(e.berth))) == 0 {
		return "Planned starts"
	}
	return ""
}

// typedGRES matches the count of a type of a generic resource.
var typedGRES = regexp.MustCompile(`gres/\w+:[^=,| ]+=\d+,?`)

// typedRow returns the row about types of generic resources, if a list differs only in theirs: Slurm
// counts those of AccountingStorageTRES.
func typedRow(e *example) string {
	if e.call.command != "sacct" {
		return ""
	}
	untyped := slices.Clone(e.berth)
	for i := range untyped {
		untyped[i].text = typedGRES.ReplaceAllString(untyped[i].text, "")
	}
	if len(differences(e.slurm, untyped)) > 0 {
		return ""
	}
	return "Accounts and users"
}

// orderRow returns the row about the order of users, if a list of sacctmgr differs only in the
// order of its lines.
func orderRow(e *example) string {
	sorted := func(lines []line) []line {
		return slices.SortedFunc(slices.Values(lines), func(a, b line) int {
			return cmp.Or(strings.Compare(a.where, b.where), strings.Compare(a.text, b.text))
		})
	}
	if e.call.command != "sacctmgr" || e.call.kind != query || len(differences(sorted(e.slurm), sorted(e.berth))) > 0 {
		return ""
	}
	return "Accounts and users"
}

// intendedRow returns the row of the page about a cause, or "" if it is no difference on
// purpose.
func intendedRow(signature, call string) string {
	for _, d := range intended {
		if (d.signature == nil || d.signature.MatchString(signature)) && (d.call == nil || d.call.MatchString(call)) {
			return d.row
		}
	}
	return ""
}
