package scontrol

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// entities are the keys that name what is changed, and the letters of them
// that are enough.
var entities = []struct {
	key, entity string
	least       int
}{
	{"NodeName", status.EntityNode, 5}, {"PartitionName", status.EntityPartition, 3}, {"ReservationName", status.EntityReservation, 4},
	{"JobId", status.EntityJob, 3}, {"StepId", status.EntityStep, 3},
}

// canonical is the key that word, a whole key or a beginning that fits one of
// them only, stands for; word itself if it is none, for the server to refuse.
func canonical(entity, word string) string {
	suffix := ""
	if n := len(word); n > 0 && (word[n-1] == '+' || word[n-1] == '-') {
		word, suffix = word[:n-1], word[n-1:]
	}
	found := ""
	for _, k := range option.ScontrolKeys[entity] {
		switch {
		case strings.EqualFold(k, word):
			return k + suffix
		case len(word) >= 3 && len(word) < len(k) && strings.EqualFold(k[:len(word)], word):
			if found != "" {
				return word + suffix // of several
			}
			found = k
		}
	}
	if found != "" {
		return found + suffix
	}
	return word + suffix
}

// specification is what update, create and delete were told.
type specification struct {
	entity string
	names  string
	set    map[string]string
	last   string // a word that names the last key, for messages
}

// specify reads ENTITY=NAME KEY=VALUE...
func specify(args []string) (s specification, err error) {
	s.set = map[string]string{}
	for _, a := range args {
		key, v, found := strings.Cut(a, "=")
		if s.entity == "" {
			for _, e := range entities {
				if abbreviates(key, e.key, e.least) && (found || e.entity == status.EntityReservation) {
					s.entity, s.names = e.entity, v
				}
			}
			if s.entity != "" {
				continue
			}
		}
		if !found {
			return s, plain("Invalid input: %s\nRequest aborted", format.Escape(a))
		}
		s.last = a
		s.set[key] = v
	}
	named := make(map[string]string, len(s.set))
	for k, v := range s.set {
		named[canonical(s.entity, k)] = v
	}
	s.set = named
	return s, nil
}

func update(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for update keyword")
	}
	s, err := specify(args)
	switch {
	case err != nil:
		return err
	case s.entity == "":
		return plain("No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"")
	case len(s.set) == 0:
		return plain("No changes specified")
	}
	if err := check(&s); err != nil {
		return err
	}
	op := status.Operation{Verb: status.OpUpdate, Entity: s.entity, Set: s.set}
	switch s.entity {
	case status.EntityJob:
		if name, ok := byName(&s); ok {
			op.Names = []string{name}
		} else {
			op.Jobs = value.SplitJobs(s.names)
		}
	case status.EntityNode:
		if op.Targets, err = hostlist.Expand(s.names); err != nil {
			return plain("slurm_update error: Invalid node name specified")
		}
	default:
		op.Targets = []string{s.names}
	}
	return o.change(ctx, op, func(item status.OperationStatus) error { return updateError(&s, item) })
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
	for _, item := range result.Items {
		if item.Error == "" {
			continue
		}
		item.Error, item.Job = format.Escape(item.Error), format.Escape(item.Job)
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
	state, given := s.set["State"]
	if !given {
		return nil
	}
	upper := strings.ToUpper(state)
	switch s.entity {
	case status.EntityNode:
		known := append(strings.Fields(strings.ToUpper(nodeStates)), "DOWN", "IDLE", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "CANCEL_REBOOT")
		if !slices.ContainsFunc(known, func(k string) bool { return len(upper) >= 3 && strings.HasPrefix(k, upper) }) {
			return plain("Invalid input: state=%s\nRequest aborted\nValid states are: %s\nNot all states are valid given a node's prior state",
				format.Escape(state), nodeStates)
		}
		if _, reason := s.set["Reason"]; !reason && (strings.HasPrefix("DOWN", upper) || strings.HasPrefix("DRAIN", upper) || upper == "FAIL") {
			return plain("You must specify a reason when DOWNING or DRAINING a node. Request denied")
		}
	case status.EntityPartition:
		if !slices.Contains([]string{"UP", "DOWN", "DRAIN", "INACTIVE"}, upper) {
			e := slurmerr.Newf(slurmerr.Refused, "Invalid input: state=%s\nAcceptable State values are UP, DOWN, DRAIN and INACTIVE", format.Escape(state))
			return e
		}
	}
	return nil
}

// updateError words why one target could not be changed.
func updateError(s *specification, item status.OperationStatus) error {
	switch {
	case strings.HasPrefix(item.Error, "Update of this parameter is not supported"):
		return plain("%s\nRequest aborted", item.Error)
	case strings.HasPrefix(item.Error, "Invalid ") && strings.HasSuffix(item.Error, " value"):
		return slurmerr.New(slurmerr.Refused, item.Error)
	}
	switch s.entity {
	case status.EntityJob:
		return plain("%s for job %s", item.Error, item.Job)
	case status.EntityReservation:
		return plain("Error updating the reservation: %s\nslurm_update error: %s", item.Error, item.Error)
	}
	return plain("slurm_update error: %s", item.Error)
}

func create(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for create keyword")
	}
	s, err := specify(args)
	if err != nil {
		if strings.EqualFold(args[0], "partition") {
			return slurmerr.New(slurmerr.Refused, "Invalid input: partition  Request aborted")
		}
		return err
	}
	op := status.Operation{Verb: status.OpCreate, Entity: s.entity, Set: s.set}
	if s.names != "" {
		op.Targets = []string{s.names}
	}
	switch s.entity {
	case status.EntityReservation:
		if err := complete(&s); err != nil {
			return err
		}
	case status.EntityPartition:
		if s.names == "" {
			return slurmerr.New(slurmerr.Refused, "PartitionName must be given.")
		}
	default:
		return slurmerr.Newf(slurmerr.Refused, "Invalid creation entity: %s", format.Escape(args[0]))
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
			return plain("Error creating the %s: %s", s.entity, format.Escape(item.Error))
		}
		made = item.Job
	}
	if s.entity == status.EntityReservation {
		return o.p.Print("Reservation created: " + format.Escape(made) + "\n")
	}
	return nil
}

// complete refuses a reservation that says too little, in scontrol's words.
func complete(s *specification) error {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := s.set[k]; return ok })
	}
	flags := strings.ToUpper(s.set["Flags"])
	switch {
	case !has("StartTime"):
		return slurmerr.New(slurmerr.Refused, "A start time must be given.  No reservation created.")
	case !has("EndTime", "Duration"):
		return slurmerr.New(slurmerr.Refused, "An end time or duration must be given.  No reservation created.")
	case !has("Nodes", "NodeCnt", "CoreCnt", "TRES", "Licenses") && !strings.Contains(flags, "ANY_NODES") && !has("PartitionName"):
		return slurmerr.New(slurmerr.Refused, "CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified. No reservation created.")
	case !has("Users", "Accounts", "Groups"):
		return slurmerr.New(slurmerr.Refused, "Either Users/Groups and/or Accounts must be specified.  No reservation created.")
	}
	return nil
}

func remove(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("too few arguments for delete keyword")
	}
	s, err := specify(args)
	if err != nil || s.entity != status.EntityReservation && s.entity != status.EntityPartition {
		return plain("Invalid deletion entity: %s", format.Escape(args[0]))
	}
	op := status.Operation{Verb: status.OpDelete, Entity: s.entity, Targets: []string{s.names}}
	return o.change(ctx, op, func(item status.OperationStatus) error {
		return plain("delete_%s %s: %s", s.entity, format.Escape(strings.Join(args, " ")), item.Error)
	})
}
