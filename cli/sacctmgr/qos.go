package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// qosFlags are those of sacctmgr(1).
var qosFlags = []string{"DenyOnLimit", "EnforceUsageThreshold", "NoReserve", "PartitionMaxNodes", "PartitionMinNodes",
	"OverPartQOS", "PartitionTimeLimit", "RequiresReservation", "NoDecay", "UsageFactorSafe"}

// setQOS makes one setting; line is what is shown of it.
func (p *plan) setQOS(q *status.AcctQOS, x pair) (line string, err error) {
	show := func(name, v string) string { return fmt.Sprintf("  %-24s = %s\n", name, v) }
	switch {
	case oneOf(x.key, "Description", 1):
		q.Description = x.value
		return fmt.Sprintf("  %-14s = %s\n", "Description", x.value), nil
	case oneOf(x.key, "Flags", 2):
		list, err := flags(x)
		if err != nil {
			return "", err
		}
		q.Flags = mixed(q.Flags, x.op, list)
		return show("Flags", strings.Join(list, ",")), nil
	case oneOf(x.key, "Priority", 3):
		n, err := integer(x.value)
		if err != nil {
			return "", only(invalid("Priority", x))
		}
		q.Priority = max(n, 0)
		return show("Priority", x.value), nil
	case oneOf(x.key, "UsageFactor", 6), oneOf(x.key, "UsageThreshold", 6):
		return p.setUsage(q, x, show)
	case oneOf(x.key, "PreemptMode", 8):
		v := strings.ToLower(x.value)
		if !slices.Contains([]string{"cluster", "cancel", "requeue", "off", "suspend,gang", "gang,suspend", "within"}, v) {
			return "", refusal(fmt.Sprintf(" Bad Preempt Mode given: %s", x.text))
		}
		if q.PreemptMode = strings.ToUpper(v); v == "cluster" {
			q.PreemptMode = ""
		}
		return show("PreemptMode", x.value), nil
	case oneOf(x.key, "PreemptExemptTime", 8):
		n, err := seconds(x.value)
		if err != nil {
			return "", only(invalid("PreemptExemptTime", x))
		}
		q.PreemptExempt = n
		return show("PreemptExemptTime", x.value), nil
	case oneOf(x.key, "Preempt", 3):
		for _, name := range x.lower() {
			if p.world.qos[name] == nil {
				return "", refusal(fmt.Sprintf("sacctmgr: error: You gave a bad qos '%s'. Valid QOS's are %s", name, p.world.validQOS()))
			}
		}
		q.Preempt = changed(q.Preempt, x)
		return show("Preempt", x.value), nil
	case oneOf(x.key, "GraceTime", 3):
		n, err := seconds(x.value)
		if err != nil {
			return "", only(invalid("GraceTime", x))
		}
		q.GraceTime = n
		return show("GraceTime", x.value), nil
	}
	line, known, err := setLimit(&q.Limits, x)
	if err != nil {
		return "", only(err)
	}
	if !known || x.is("Fairshare", "Shares") {
		return "", told(unknown(x).Error())
	}
	name, v, _ := strings.Cut(strings.TrimSpace(line), "=")
	return show(strings.TrimSpace(name), strings.TrimSpace(v)), nil
}

func (p *plan) setUsage(q *status.AcctQOS, x pair, show func(string, string) string) (string, error) {
	f, err := strconv.ParseFloat(x.value, 64)
	name, to := "UsageFactor", &q.UsageFactor
	if oneOf(x.key, "UsageThreshold", 6) && !oneOf(x.key, "UsageFactor", 6) {
		name, to = "UsageThres", &q.UsageThres
	}
	if err != nil || f < 0 && f != -1 {
		return "", only(invalid(name, x))
	}
	if *to = x.value; f == -1 {
		*to = ""
	}
	return show(name, fmt.Sprintf("%f", f)), nil
}

// seconds reads a number of seconds, or a time such as 00:05:00.
func seconds(text string) (int32, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= -1 {
		return int32(max(n, 0)), nil
	}
	minutes, err := value.Minutes(text)
	return max(minutes, 0) * 60, err
}

func flags(x pair) ([]string, error) {
	if x.value == "-1" {
		return nil, nil
	}
	var out []string
	for _, f := range x.list() {
		i := slices.IndexFunc(qosFlags, func(known string) bool { return oneOf(f, known, 4) })
		if i < 0 {
			return nil, told(fmt.Sprintf(" Unknown QOS flag used in:\n  '%s'\n Valid QOS flags are\n  '%s'", x.value, strings.Join(qosFlags, ",")))
		}
		if qosFlags[i] == "UsageFactorSafe" && x.op != "-" {
			return nil, refusal(" UsageFactorSafe is not supported: limits are not enforced in Slurm's safe mode here")
		}
		out = append(out, qosFlags[i])
	}
	return out, nil
}

// mixed is the list after =, += or -= of names that keep their case.
func mixed(list []string, op string, names []string) []string {
	switch op {
	case "=":
		return names
	case "+":
		out := slices.Clone(list)
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out
	}
	return kept(list, func(n string) bool { return !slices.Contains(names, n) })
}

func addQOS(p *plan, list []pair) error {
	var names []string
	proto := status.AcctQOS{}
	described := ""
	var lines []string
	for _, x := range list {
		if x.key == "" || oneOf(x.key, "Names", 1) {
			names = append(names, x.lower()...)
			continue
		}
		line, err := p.setQOS(&proto, x)
		if err != nil {
			return err
		}
		if oneOf(x.key, "Description", 1) {
			described = line
		} else {
			lines = append(lines, line)
		}
	}
	if len(names) == 0 {
		return refusal(" Need name of qos to add.")
	}
	var fresh []string
	for _, name := range names {
		if p.world.qos[name] != nil || name == "normal" && len(p.world.before.QOS) == 0 && len(lines) == 0 {
			continue
		}
		if err := checkName("QOS", name); err != nil {
			return err
		}
		q := proto
		q.Name = name
		if q.Description == "" {
			q.Description = name
		}
		p.world.qos[name] = &q
		fresh = append(fresh, name)
	}
	if len(fresh) == 0 {
		return refusal(" Nothing new added.")
	}
	// A job without a QOS is one of "normal", which is there by itself only as
	// long as nothing else is.
	if len(p.world.before.QOS) == 0 && p.world.qos["normal"] == nil {
		p.world.qos["normal"] = &status.AcctQOS{Name: "normal", Description: "Normal QOS default"}
	}
	if described == "" {
		described = fmt.Sprintf("  %-14s = %s\n", "Description", fresh[0])
	}
	slices.Sort(lines)
	p.say(" Adding QOS(s)\n  %s\n Settings\n%s%s", strings.Join(fresh, "\n  "), described, strings.Join(lines, ""))
	return nil
}

func (p *plan) qosWhere(where []pair) ([]string, error) {
	var names []string
	for _, x := range where {
		if x.key != "" && !oneOf(x.key, "Names", 1) && !oneOf(x.key, "QOS", 1) {
			return nil, refusal(fmt.Sprintf(" Unknown condition: %s\n Use keyword 'set' to modify value", x.text))
		}
		names = append(names, x.lower()...)
	}
	return kept(sortedNames(p.world.qos), func(n string) bool { return len(names) == 0 || slices.Contains(names, n) }), nil
}

func modifyQOS(p *plan, list []pair) error {
	where, set := halves(list)
	if len(set) == 0 {
		return refusal(nothingToSet)
	}
	// "normal" is there by itself as long as nothing else is, and a change of it
	// makes it an object.
	if len(p.world.before.QOS) == 0 && p.world.qos["normal"] == nil {
		p.world.qos["normal"] = &status.AcctQOS{Name: "normal", Description: "Normal QOS default"}
	}
	names, err := p.qosWhere(where)
	if err != nil {
		return err
	}
	for _, x := range set { // a mistake is one whatever is meant
		if _, err := p.setQOS(&status.AcctQOS{}, x); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return refusal(" Nothing modified")
	}
	p.say(" Modified qos...\n")
	for _, name := range names {
		for _, x := range set {
			if _, err := p.setQOS(p.world.qos[name], x); err != nil {
				p.text.Reset()
				return err
			}
		}
		p.say("  %s\n", name)
	}
	return nil
}

func deleteQOS(p *plan, list []pair) error {
	where, _ := halves(list)
	if len(where) == 0 {
		return refusal(" No conditions given to remove, not executing.")
	}
	names, err := p.qosWhere(where)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return refusal(" Nothing deleted")
	}
	p.say(" Deleting QOS(s)...\n")
	gone := pair{op: "-", value: strings.Join(names, ",")}
	for _, name := range names {
		p.say("  %s\n", name)
		delete(p.world.qos, name)
	}
	drop := func(list *[]string, def *string) {
		*list = kept(*list, func(q string) bool { return !slices.Contains(names, q) })
		if slices.Contains(names, *def) {
			*def = ""
		}
	}
	for _, a := range p.world.accounts {
		drop(&a.QOS, &a.DefaultQOS)
	}
	for _, u := range p.world.users {
		for i := range u.Associations {
			drop(&u.Associations[i].QOS, &u.Associations[i].DefaultQOS)
		}
		if slices.Contains(names, u.DefaultQOS) {
			u.DefaultQOS = ""
		}
	}
	for _, q := range p.world.qos {
		q.Preempt = changed(q.Preempt, gone)
	}
	return nil
}
