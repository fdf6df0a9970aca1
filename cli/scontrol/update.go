package scontrol

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// entities are the keys that name the object to change, with their shortest
// abbreviations.
var entities = []struct {
	key, entity string
	least       int
}{
	{
		"NodeName",
		status.EntityNode,
		4,
	},
	{"PartitionName", status.EntityPartition, 3},
	{"ReservationName", status.EntityReservation, 3},
	{"JobId", status.EntityJob, 3},
	{"StepId", status.EntityStep, 3},
}

// abbreviated is a key with the number of letters that are enough of it.
type abbreviated struct {
	key   string
	least int
}

// reservationKeys are the letters that are enough for a key of a reservation, as
// Slurm 22.05's scontrol takes them.
var reservationKeys = []abbreviated{
	{
		"ReservationName",
		1,
	},
	{"StartTime", 2},
	{"EndTime", 1},
	{"Duration", 1},
	{"Nodes", 5},
	{"NodeCnt", 5},
	{"NodeCount", 5},
	{
		"CoreCnt",
		5,
	},
	{"CoreCount", 5},
	{"Features", 2},
	{"Flags", 2},
	{"Licenses", 2},
	{"PartitionName", 1},
	{"Users", 1},
	{"Accounts", 1},
	{"Groups", 1},
	{"TRES", 1},
	{"BurstBuffer", 2},
	{"MaxStartDelay", 3},
	{"Watts", 1},
}

// jobKeys are the letters that are enough for a key of a job, as Slurm 22.05's scontrol
// takes them. A word that fits several keys is the first of them.
var jobKeys = []abbreviated{
	{"Account", 1}, {"AdminComment", 6}, {"ArrayTaskThrottle", 10}, {"BurstBuffer", 1},
	{"ClusterFeatures", 8}, {"Comment", 3}, {"Contiguous", 3}, {"CoreSpec", 4}, {"CPUsPerTask", 9},
	{"Dependency", 1}, {"Deadline", 3}, {"DelayBoot", 5},
	{"EligibleTime", 2}, {"EndTime", 2}, {"ExcNodeList", 3}, {"Features", 1}, {"Gres", 2},
	{"JobName", 3}, {"Licenses", 1}, {"MailType", 5}, {"MailUser", 5},
	{"MinCPUsNode", 4}, {"MinMemoryCPU", 10}, {"MinMemoryNode", 10}, {"MinTmpDiskNode", 5},
	{"Name", 2}, {"Nice", 2}, {"NodeList", 8}, {"NumCPUs", 6}, {"NumNodes", 8}, {"NumTasks", 8},
	{"OverSubscribe", 2}, {"Partition", 2}, {"Priority", 2}, {"Prefer", 3}, {"QOS", 2},
	{"ReqCores", 4}, {"ReqNodeList", 8}, {"ReqNodes", 8}, {"ReqProcs", 8}, {"ReqSockets", 4}, {"ReqThreads", 4},
	{"Requeue", 4}, {"ReservationName", 3}, {"Shared", 2}, {"SiteFactor", 5}, {"StartTime", 2}, {"StdOut", 6},
	{"Switches", 5}, {"ThreadSpec", 4}, {"TimeLimit", 5}, {"TimeMin", 5},
	{"TresPerJob", 8}, {"TresPerNode", 8}, {"TresPerSocket", 8}, {"TresPerTask", 8},
	{"UserID", 3}, {"WCKey", 1}, {"WorkDir", 2},
}

// canonical returns the key that word is or abbreviates; word itself if it is none, so that
// the server refuses it.
func canonical(entity, word string) string {
	suffix := ""
	if n := len(word); n > 0 && (word[n-1] == '+' || word[n-1] == '-') {
		word, suffix = word[:n-1], word[n-1:]
	}
	table := reservationKeys
	switch entity {
	case status.EntityReservation:
	case status.EntityJob:
		table = jobKeys
	default:
		return cmp.Or(keyvalue.Unique(word, option.ScontrolKeys[entity], 3), word) + suffix
	}
	for _, k := range table {
		if keyvalue.Abbreviates(word, k.key, k.least) {
			return k.key + suffix
		}
	}
	return word + suffix
}

// specification has the arguments of update, create and delete.
type specification struct {
	entity string
	names  string
	set    map[string]string
	keys   []string // of set, as given
	last   string   // a word that names the last key, for messages
	words  []string
	// nothingDone is what messages about a reservation end with if scontrol finds the
	// error itself.
	nothingDone string
}

// asTyped returns the message about a target with the setting as it was typed: the
// server knows the keys in another spelling.
func (s *specification) asTyped(item status.OperationStatus) string {
	setting := item.Parameter + "=" + item.Value
	i := slices.IndexFunc(s.words, func(w string) bool { return strings.EqualFold(w, setting) })
	if i < 0 {
		return item.Error
	}
	return strings.Replace(item.Error, setting, s.words[i], 1)
}

// misformatted is the answer to a word that is no KEY=VALUE.
func (s *specification) misformatted(word string) error {
	word = printable.Escape(word)
	switch s.entity {
	case "":
		if keyvalue.Abbreviates(word, "JobId", 3) {
			break
		}
		return nil
	case status.EntityReservation:
		return slurmerr.New(
			slurmerr.Refused,
			"Misformatted parameter '"+word+"', most options have a parameter after '='"+s.nothingDone,
		)
	case status.EntityNode, status.EntityPartition:
		return slurmerr.Newf(slurmerr.Refused, "Invalid input: %s  Request aborted", word)
	case status.EntityStep:
		return plain("Invalid input: %s\nRequest aborted\nslurm_update error: No error", word)
	}
	return plain("Invalid input: %s\nRequest aborted", word)
}

// specify reads ENTITY=NAME KEY=VALUE... Without an error and an entity the
// first word is none.
func specify(args []string, nothingDone string) (s specification, err error) {
	s.nothingDone = nothingDone
	type assignment struct{ key, value string }
	var given []assignment
	for i := 0; i < len(args); i++ {
		a := args[i]
		key, v, found := strings.Cut(a, "=")
		if !found && s.entity == status.EntityJob && strings.EqualFold(key, "Nice") &&
			(i+1 == len(args) || strings.Contains(args[i+1], "=")) {
			a, v, found = a+"=100", "100", true // as sbatch --nice alone
		}
		if !found && keyvalue.Abbreviates(key, "JobId", 3) ||
			s.entity == status.EntityJob && !found && i+1 < len(args) {
			if i++; i < len(args) { // KEY VALUE, which Slurm takes of jobs
				v, found = args[i], true
				a += "=" + v
			}
		}
		if s.entity == "" {
			if found && (strings.EqualFold(key, "JobName") || strings.EqualFold(key, "Name")) {
				s.entity, given = status.EntityJob, append(given, assignment{"JobName", v})
				continue
			}
			for _, e := range entities {
				if keyvalue.Abbreviates(key, e.key, e.least) && (found || e.entity == status.EntityReservation) {
					s.entity, s.names = e.entity, v
				}
			}
			if s.entity != "" {
				continue
			}
		}
		if found && s.entity == status.EntityJob && keyvalue.Abbreviates(key, "JobId", 3) {
			s.names = v // the last of several counts
			continue
		}
		if found && s.entity == status.EntityReservation && canonical(s.entity, key) == "ReservationName" {
			s.names = v // after the word "reservation" alone
			continue
		}
		if !found {
			return s, s.misformatted(a)
		}
		s.last, s.words = a, append(s.words, a)
		given = append(given, assignment{key, v})
	}
	s.set = make(map[string]string, len(given))
	for _, a := range given { // the last of several counts, however it is spelled
		k, v := canonical(s.entity, a.key), a.value
		if bare := strings.TrimRight(k, "+-"); s.entity == status.EntityJob && bare == "TimeLimit" && bare != k {
			k, v = bare, k[len(bare):]+v
		}
		s.set[k] = v
		s.keys = append(slices.DeleteFunc(s.keys, func(o string) bool { return o == k }), k)
	}
	return s, nil
}

func update(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for update keyword")
	}
	s, err := specify(args, notUpdated)
	switch {
	case err != nil:
		return notSent(err)
	case s.entity == "":
		return plain(
			"No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"",
		)
	case s.entity == status.EntityStep && !stepNamed(s.names):
		return plain("Invalid StepID parameter: %s\nRequest aborted", printable.Escape(args[0]))
	case s.entity == status.EntityReservation && s.names == "":
		return slurmerr.New(slurmerr.Refused, "Reservation must be given"+notUpdated)
	case s.entity == status.EntityPartition && len(s.set) == 0:
		return slurmerr.New(slurmerr.Refused, "No changes specified")
	case len(s.set) == 0 && s.entity != status.EntityReservation:
		return plain("No changes specified")
	}
	op := status.Operation{Verb: status.OpUpdate, Entity: s.entity, Set: s.set, Keys: s.keys}
	if err := check(&s); err != nil {
		return err
	}
	switch s.entity {
	case status.EntityJob:
		if err := s.checkReadJob(); err != nil {
			return err
		}
		name, ok := byName(&s)
		switch {
		case ok:
			op.Names = []string{name}
		case s.names == "":
			return nil // like Slurm, which takes JobId= for no job and says nothing
		default:
			op.Jobs = value.SplitJobs(s.names)
		}
	case status.EntityNode:
		if op.Targets, err = o.nodes(ctx, s.names); err != nil {
			return plain("slurm_update error: Invalid node name specified")
		}
	default:
		op.Targets = []string{s.names}
	}
	err = o.change(ctx, op, func(item status.OperationStatus) error {
		if o.quiet && s.entity == status.EntityJob && item.Job != "" {
			return &slurmerr.Error{Code: 1}
		}
		if err := o.noTask(ctx, &s, item); err != nil {
			return err
		}
		return updateError(&s, item)
	})
	if err == nil && s.entity == status.EntityReservation {
		return o.p.Print("Reservation updated.\n")
	}
	return err
}

// noTask returns the error about a task that an existing job does not have; nil: it is
// about something else.
func (o *Options) noTask(ctx context.Context, s *specification, item status.OperationStatus) error {
	job, _, isTask := strings.Cut(item.Job, "_")
	if !isTask || item.Code != status.CodeInvalidJobID || !s.readsJob() {
		return nil
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	known, err := c.Jobs(ctx, jobs.Filter{IDs: []string{job}, States: jobs.AllStates, Fields: []string{"id"}})
	if err != nil || len(known.Items) == 0 {
		return err
	}
	return plain("%s", aboutJob(printable.Escape(item.Job), escapeLines(item.Error)))
}

// nodes are the nodes of a list, or all of the cluster.
func (o *Options) nodes(ctx context.Context, list string) ([]string, error) {
	if !strings.EqualFold(list, "ALL") {
		return hostlist.ExpandLenient(list)
	}
	c, err := o.connect()
	if err != nil {
		return nil, err
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all.Items))
	for i := range all.Items {
		names[i] = all.Items[i].Name
	}
	return names, nil
}

// byName reports whether the jobs are chosen by JobName instead of an id.
func byName(s *specification) (string, bool) {
	if s.names != "" {
		return "", false
	}
	name, ok := s.set["JobName"]
	return name, ok
}

// change carries out an operation; say words the failure of one target.
func (o *Options) change(ctx context.Context, op status.Operation, say func(status.OperationStatus) error) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	result, err := c.Operate(ctx, op)
	if err != nil {
		return err
	}
	var failed error
	if len(result.Items) == 0 && len(op.Names) > 0 {
		return slurmerr.Newf(slurmerr.Refused, "No jobs with name '%s'", printable.Escape(op.Names[0]))
	}
	for _, item := range result.Items {
		if item.Error == "" {
			continue
		}
		if failed != nil {
			slurmerr.Print(o.p.Err, "scontrol", failed)
		}
		failed = say(item)
	}
	return failed
}

// nodeStates are the states that update takes of a node, as its message says.
const nodeStates = "NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN"

// check refuses what Slurm's scontrol refuses without asking the controller.
func check(s *specification) error {
	if s.entity == status.EntityNode {
		if err := checkWeight(s); err != nil {
			return err
		}
	}
	state, given := s.set["State"]
	if !given {
		return nil
	}
	upper := strings.ToUpper(state)
	if s.entity == status.EntityNode {
		known := append(
			strings.Fields(strings.ToUpper(nodeStates)),
			"DOWN",
			"IDLE",
			"POWER_DOWN_ASAP",
			"POWER_DOWN_FORCE",
			"CANCEL_REBOOT",
			"ALLOCATED",
			"MIXED",
			"UNKNOWN",
		)
		i := slices.IndexFunc(known, func(k string) bool { return len(upper) >= 3 && strings.HasPrefix(k, upper) })
		if i < 0 {
			return plain(
				"Invalid input: state=%s\nRequest aborted\nValid states are: %s\nNot all states are valid given a node's prior state",
				printable.Escape(state),
				nodeStates,
			)
		}
		s.set["State"] = known[i]
		if s.set["Reason"] == "" &&
			(strings.HasPrefix("DOWN", upper) || strings.HasPrefix("DRAIN", upper) || upper == "FAIL") {
			return plain("You must specify a reason when DOWNING or DRAINING a node. Request denied")
		}
	}
	return nil
}

// mostWeight is the largest weight of a node.
const mostWeight = 1<<31 - 1

// checkWeight refuses invalid weights of nodes.
func checkWeight(s *specification) error {
	v := s.set["Weight"]
	if v == "" {
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	why := ""
	switch {
	case err != nil:
		why = "is not a valid number"
	case n < 0:
		why = "is less than zero"
	case n > mostWeight:
		why = "is greater than " + strconv.Itoa(mostWeight)
	default:
		return nil
	}
	e := slurmerr.Newf(slurmerr.Refused, "Weight value (%s) %s", printable.Escape(v), why)
	e.After = "No changes specified\n"
	return e
}

func create(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for create keyword")
	}
	s, err := specify(args, notCreated)
	if err != nil {
		return err
	}
	op := status.Operation{Verb: status.OpCreate, Entity: s.entity, Set: s.set}
	if s.names != "" {
		op.Targets = []string{s.names}
	}
	switch s.entity {
	case status.EntityReservation:
	case status.EntityPartition:
		if s.names == "" {
			return slurmerr.New(slurmerr.Refused, "PartitionName must be given.")
		}
		if strings.EqualFold(s.names, "DEFAULT") {
			return slurmerr.New(slurmerr.Refused, `PartitionName cannot be "DEFAULT".`)
		}
	default:
		if strings.EqualFold(args[0], "partition") {
			return slurmerr.New(slurmerr.Refused, "Invalid input: partition  Request aborted")
		}
		return slurmerr.Newf(slurmerr.Refused, "Invalid creation entity: %s", printable.Escape(args[0]))
	}
	made := ""
	c, err := o.connect()
	if err != nil {
		return err
	}
	result, err := c.Operate(ctx, op)
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		if item.Error != "" {
			return createError(&s, item)
		}
		made = item.Job
	}
	if s.entity == status.EntityReservation {
		return o.p.Print("Reservation created: " + printable.Escape(made) + "\n")
	}
	return nil
}

func remove(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for delete keyword")
	}
	if len(args) == 1 && !strings.Contains(args[0], "=") {
		return slurmerr.New(slurmerr.Refused, "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
	}
	typed := args[0]
	if len(args) == 2 && !strings.Contains(args[0], "=") {
		args = []string{args[0] + "=" + args[1]} // ENTITY ID
	}
	s, err := specify(args, "")
	if err != nil || s.entity != status.EntityReservation && s.entity != status.EntityPartition {
		return plain("Invalid deletion entity: %s", printable.Escape(typed))
	}
	op := status.Operation{Verb: status.OpDelete, Entity: s.entity, Targets: []string{s.names}}
	return o.change(ctx, op, func(item status.OperationStatus) error {
		return plain("delete_%s %s: %s", s.entity, printable.Escape(typed), escapeLines(item.Error))
	})
}
