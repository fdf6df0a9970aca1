package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// qosFlags are those of sacctmgr(1).
var qosFlags = []string{"DenyOnLimit", "EnforceUsageThreshold", "NoReserve", "PartitionMaxNodes", "PartitionMinNodes",
	"OverPartQOS", "PartitionTimeLimit", "RequiresReservation", "NoDecay", "UsageFactorSafe"}

var preemptModes = []string{"cluster", "cancel", "requeue", "off", "suspend,gang", "gang,suspend", "within"}

// qosEdit applies settings to a QOS and collects the lines that are shown.
type qosEdit struct {
	state       *state
	qos         *status.AcctQOS
	names       []string // of add
	description string   // the line of the description
	lines       []string // of the other settings
}

func (c *qosEdit) show(name, v string) {
	c.lines = append(c.lines, fmt.Sprintf("  %-24s = %s\n", name, v))
}

var qosSettings = keyvalue.Table[*qosEdit]{
	{Name: "Description", Least: 1, Set: (*qosEdit).setDescription},
	{Name: "Flags", Least: 2, Set: (*qosEdit).setFlags},
	{Name: "Priority", Least: 3, Set: (*qosEdit).setPriority},
	{
		Name: "UsageFactor", Least: 6,
		Set: setUsage("UsageFactor", func(q *status.AcctQOS) *string { return &q.UsageFactor }),
	},
	{
		Name: "UsageThreshold", Least: 6,
		Set: setUsage("UsageThres", func(q *status.AcctQOS) *string { return &q.UsageThres }),
	},
	{Name: "PreemptMode", Least: 8, Set: (*qosEdit).setPreemptMode},
	{Name: "PreemptExemptTime", Least: 8, Set: setSeconds("PreemptExemptTime",
		func(q *status.AcctQOS) *int32 { return &q.PreemptExempt })},
	{Name: "Preempt", Least: 3, Set: (*qosEdit).setPreempt},
	{Name: "GraceTime", Least: 3, Set: setSeconds("GraceTime", func(q *status.AcctQOS) *int32 { return &q.GraceTime })},
}

// newQOSWords are the words of add qos.
var newQOSWords = append(keyvalue.Table[*qosEdit]{
	keyvalue.Any((*qosEdit).addNames),
	{Name: "Names", Least: 1, Set: (*qosEdit).addNames},
}, qosSettings...)

func (c *qosEdit) addNames(p keyvalue.Pair) error {
	c.names = append(c.names, p.LowerList()...)
	return nil
}

// set applies a word of the table, or a limit.
func (c *qosEdit) set(table keyvalue.Table[*qosEdit], p keyvalue.Pair) error {
	if known, err := table.Set(c, p); known {
		return err
	}
	line, known, err := setLimit(&c.qos.Limits, p)
	if err != nil {
		return withoutOption(err)
	}
	if !known || isFairshare(p) {
		return &refusal{option: p.Text, hint: true, toStdout: true}
	}
	name, v, _ := strings.Cut(strings.TrimSpace(line), "=")
	c.show(strings.TrimSpace(name), strings.TrimSpace(v))
	return nil
}

func (c *qosEdit) setDescription(p keyvalue.Pair) error {
	c.qos.Description = p.Value
	c.description = descriptionLine(p.Value)
	return nil
}

func descriptionLine(text string) string { return fmt.Sprintf("  %-14s = %s\n", "Description", text) }

func (c *qosEdit) setFlags(p keyvalue.Pair) error {
	list, err := parseFlags(p)
	if err != nil {
		return err
	}
	c.qos.Flags = keyvalue.Change(c.qos.Flags, p.Op, list)
	c.show("Flags", strings.Join(list, ","))
	return nil
}

func (c *qosEdit) setPriority(p keyvalue.Pair) error {
	n, err := parseLimit(p.Value)
	if err != nil {
		return withoutOption(invalidValue("Priority", p))
	}
	c.qos.Priority = max(n, 0)
	c.show("Priority", p.Value)
	return nil
}

func (c *qosEdit) setPreemptMode(p keyvalue.Pair) error {
	mode := strings.ToLower(p.Value)
	if !slices.Contains(preemptModes, mode) {
		return refusef(" Bad Preempt Mode given: %s", p.Text)
	}
	if c.qos.PreemptMode = strings.ToUpper(mode); mode == "cluster" {
		c.qos.PreemptMode = ""
	}
	c.show("PreemptMode", p.Value)
	return nil
}

func (c *qosEdit) setPreempt(p keyvalue.Pair) error {
	for _, name := range p.LowerList() {
		if c.state.qos[name] == nil {
			return refusef("sacctmgr: error: You gave a bad qos '%s'. Valid QOS's are %s", name, c.state.validQOS())
		}
	}
	c.qos.Preempt = keyvalue.Change(c.qos.Preempt, p.Op, p.LowerList())
	c.show("Preempt", p.Value)
	return nil
}

// setUsage returns the setter of a factor; -1 removes it.
func setUsage(shown string, field func(*status.AcctQOS) *string) func(*qosEdit, keyvalue.Pair) error {
	return func(c *qosEdit, p keyvalue.Pair) error {
		f, err := strconv.ParseFloat(p.Value, 64)
		if err != nil || f < 0 && f != -1 {
			return withoutOption(invalidValue(shown, p))
		}
		if *field(c.qos) = p.Value; f == -1 {
			*field(c.qos) = ""
		}
		c.show(shown, fmt.Sprintf("%f", f))
		return nil
	}
}

// setSeconds returns the setter of a time.
func setSeconds(name string, field func(*status.AcctQOS) *int32) func(*qosEdit, keyvalue.Pair) error {
	return func(c *qosEdit, p keyvalue.Pair) error {
		n, err := parseSeconds(p.Value)
		if err != nil {
			return withoutOption(invalidValue(name, p))
		}
		*field(c.qos) = n
		c.show(name, p.Value)
		return nil
	}
}

// parseSeconds parses a number of seconds, or a time such as 00:05:00.
func parseSeconds(text string) (int32, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= -1 {
		return int32(max(n, 0)), nil
	}
	minutes, err := value.Minutes(text)
	return max(minutes, 0) * 60, err
}

// parseFlags parses a list of flags; -1 is the empty list.
func parseFlags(p keyvalue.Pair) ([]string, error) {
	if p.Value == "-1" {
		return nil, nil
	}
	var out []string
	for _, f := range p.List() {
		i := slices.IndexFunc(qosFlags, func(known string) bool { return keyvalue.Abbreviates(f, known, 4) })
		if i < 0 {
			return nil, &refusal{toStdout: true, text: fmt.Sprintf(
				" Unknown QOS flag used in:\n  '%s'\n Valid QOS flags are\n  '%s'", p.Value,
				strings.Join(qosFlags, ","))}
		}
		if qosFlags[i] == "UsageFactorSafe" && p.Op != keyvalue.Remove {
			return nil, refusef(" UsageFactorSafe is not supported: limits are not enforced in Slurm's safe mode here")
		}
		out = append(out, qosFlags[i])
	}
	return out, nil
}

func addQOS(e *edit, words []keyvalue.Pair) error {
	c := &qosEdit{state: e.state, qos: &status.AcctQOS{}}
	for _, p := range words {
		if err := c.set(newQOSWords, p); err != nil {
			return err
		}
	}
	if len(c.names) == 0 {
		return refusef(" Need name of qos to add.")
	}
	var added []string
	for _, name := range c.names {
		existsImplicitly := name == normalQOS && len(e.state.original.QOS) == 0 && len(c.lines) == 0
		if e.state.qos[name] != nil || existsImplicitly {
			continue
		}
		if err := checkName("QOS", name); err != nil {
			return err
		}
		q := *c.qos
		q.Name, q.Description = name, cmp.Or(c.qos.Description, name)
		e.state.qos[name] = &q
		added = append(added, name)
	}
	if len(added) == 0 {
		return nothing("new added.")
	}
	e.state.materializeNormalQOS()
	slices.Sort(c.lines)
	e.printNames("Adding QOS(s)", added)
	e.printf(" Settings\n%s%s", cmp.Or(c.description, descriptionLine(added[0])), strings.Join(c.lines, ""))
	return nil
}

// qosWhere returns the QOS that meet the conditions, by name.
func (s *state) qosWhere(where []keyvalue.Pair) ([]string, error) {
	var names []string
	for _, p := range where {
		if p.Key != "" && !keyvalue.Abbreviates(p.Key, "Names", 1) && !keyvalue.Abbreviates(p.Key, "QOS", 1) {
			return nil, unknownCondition(p)
		}
		names = append(names, p.LowerList()...)
	}
	return filter(sortedNames(s.qos), func(name string) bool { return matches(names, name) }), nil
}

func modifyQOS(e *edit, words []keyvalue.Pair) error {
	where, set := splitWhereSet(words)
	if len(set) == 0 {
		return refusef(nothingToSet)
	}
	e.state.materializeNormalQOS()
	names, err := e.state.qosWhere(where)
	if err != nil {
		return err
	}
	// Settings are checked even if no QOS meets the conditions.
	for _, p := range set {
		scratch := &qosEdit{state: e.state, qos: &status.AcctQOS{}}
		if err := scratch.set(qosSettings, p); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nothing("modified")
	}
	for _, name := range names {
		c := &qosEdit{state: e.state, qos: e.state.qos[name]}
		for _, p := range set {
			if err := c.set(qosSettings, p); err != nil {
				return err
			}
		}
	}
	e.printNames("Modified qos...", names)
	return nil
}

func removeQOS(e *edit, words []keyvalue.Pair) error {
	where, _ := splitWhereSet(words)
	if len(where) == 0 {
		return refusef(noRemoveConditions)
	}
	names, err := e.state.qosWhere(where)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nothing("deleted")
	}
	e.printNames("Deleting QOS(s)...", names)
	for _, name := range names {
		delete(e.state.qos, name)
	}
	e.state.clearQOS(names)
	return nil
}

// clearQOS removes QOS from the lists and defaults that name them.
func (s *state) clearQOS(names []string) {
	clearFrom := func(list *[]string, defaultQOS *string) {
		*list = keyvalue.Change(*list, keyvalue.Remove, names)
		if slices.Contains(names, *defaultQOS) {
			*defaultQOS = ""
		}
	}
	for _, a := range s.accounts {
		clearFrom(&a.QOS, &a.DefaultQOS)
	}
	for _, u := range s.users {
		for i := range u.Associations {
			clearFrom(&u.Associations[i].QOS, &u.Associations[i].DefaultQOS)
		}
		if slices.Contains(names, u.DefaultQOS) {
			u.DefaultQOS = ""
		}
	}
	for _, q := range s.qos {
		q.Preempt = keyvalue.Change(q.Preempt, keyvalue.Remove, names)
	}
}
