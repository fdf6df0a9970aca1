package completion

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/option"
)

func list(k option.Kind) option.Domain { return option.Domain{Kind: k, List: true} }

func oneOf(words ...string) option.Domain { return option.Domain{Kind: option.Words, Words: words} }

func someOf(words ...string) option.Domain {
	return option.Domain{Kind: option.Words, Words: words, List: true}
}

var yesNo = oneOf("YES", "NO")

// keyDomains are the domains of the keys of scontrol, sacctmgr and sreport, by name in
// lower case. Values of other keys are not completed.
var keyDomains = map[string]option.Domain{
	"jobid":             list(option.Jobs),
	"nodename":          list(option.Nodes),
	"partitionname":     {Kind: option.Partitions},
	"reservationname":   {Kind: option.Reservations},
	"reservation":       {Kind: option.Reservations},
	"stepid":            {Kind: option.Steps},
	"account":           list(option.Accounts),
	"partition":         list(option.Partitions),
	"qos":               {Kind: option.QOS},
	"nodelist":          list(option.Nodes),
	"excnodelist":       list(option.Nodes),
	"reqnodelist":       list(option.Nodes),
	"nodes":             list(option.Nodes),
	"allocnodes":        list(option.Nodes),
	"dependency":        {Kind: option.Dependencies},
	"features":          {Kind: option.Features},
	"activefeatures":    list(option.Features),
	"availablefeatures": list(option.Features),
	"gres":              list(option.GRES),
	"trespernode":       list(option.GRES),
	"licenses":          list(option.Licenses),
	"mailtype":          someOf("NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "TIME_LIMIT", "ARRAY_TASKS"),
	"mailuser":          {Kind: option.Users},
	"userid":            {Kind: option.Users},
	"jobname":           {Kind: option.JobNames},
	"wckey":             {Kind: option.WCKeys},
	"contiguous":        yesNo,
	"requeue":           oneOf("0", "1"),
	"oversubscribe":     oneOf("YES", "NO", "EXCLUSIVE", "FORCE"),
	"shared":            oneOf("YES", "NO", "EXCLUSIVE", "FORCE"),
	"users":             list(option.Users),
	"accounts":          list(option.Accounts),
	"allowaccounts":     list(option.Accounts),
	"denyaccounts":      list(option.Accounts),
	"allowqos":          list(option.QOS),
	"denyqos":           list(option.QOS),
	"default":           yesNo,
	"hidden":            yesNo,
	"rootonly":          yesNo,
	"reqresv":           yesNo,
	"exclusiveuser":     yesNo,
	"disablerootjobs":   yesNo,
	"alternate":         {Kind: option.Partitions},
	"preemptmode":       oneOf("OFF", "CANCEL", "REQUEUE", "SUSPEND"),
	"flags": someOf(
		"MAINT",
		"DAILY",
		"WEEKLY",
		"WEEKDAY",
		"WEEKEND",
		"HOURLY",
		"FLEX",
		"IGNORE_JOBS",
		"OVERLAP",
		"PART_NODES",
		"ANY_NODES",
		"STATIC_ALLOC",
		"SPEC_NODES",
		"MAGNETIC",
		"PURGE_COMP",
		"NO_HOLD_JOBS_AFTER",
	),
	"timelimit": {},
	"workdir":   {Kind: option.Dir},
	"stdout":    {Kind: option.File},

	"parent":         {Kind: option.Accounts},
	"defaultaccount": {Kind: option.Accounts},
	"partitions":     list(option.Partitions),
	"adminlevel":     oneOf("None", "Operator", "Administrator"),
	"qoslevel":       list(option.QOS),
	"defaultqos":     {Kind: option.QOS},
	"preempt":        list(option.QOS),
	"wckeys":         list(option.WCKeys),
	"defaultwckey":   {Kind: option.WCKeys},
	"cluster":        {Kind: option.Clusters},
	"clusters":       {Kind: option.Clusters},
	"format":         list(option.Fields),
	"file":           {Kind: option.File},
	"tres":           someOf("cpu", "mem", "node", "billing", "gres/gpu"),
}

// keyDomain returns the domain of KEY= for an entity.
func keyDomain(entity, key string) option.Domain {
	key = strings.ToLower(strings.TrimRight(key, "+-"))
	switch {
	case key == "state" && entity == "node":
		return oneOf("DOWN", "DRAIN", "FAIL", "FUTURE", "IDLE", "NoResp", "POWER_DOWN", "POWER_UP", "RESUME", "UNDRAIN")
	case key == "state":
		return oneOf("UP", "DOWN", "DRAIN", "INACTIVE")
	case key == "names" || key == "name":
		return entityNames[entity]
	case key == "flags" && entity == "qos":
		return someOf(
			"DenyOnLimit",
			"EnforceUsageThreshold",
			"NoDecay",
			"NoReserve",
			"OverPartQOS",
			"PartitionMaxNodes",
			"PartitionMinNodes",
			"PartitionTimeLimit",
			"RequiresReservation",
			"UsageFactorSafe",
		)
	}
	return keyDomains[key]
}

// entityNames are the kinds of names of sacctmgr's entities.
var entityNames = map[string]option.Domain{
	"user": list(option.Users), "account": list(option.Accounts), "qos": list(option.QOS),
	"coordinator": list(option.Users), "cluster": {Kind: option.Clusters},
	"wckey": list(option.WCKeys),
}

// sacctmgrVerb maps verbs to those with the same syntax.
var sacctmgrVerb = map[string]string{
	"show":   "show",
	"list":   "show",
	"add":    "add",
	"create": "add",
	"modify": "modify",
	"delete": "delete",
	"remove": "delete",
}

func (c *cursor) sacctmgr() Answer {
	if len(c.operands) == 0 {
		return c.verbs()
	}
	verb, words := sacctmgrVerb[strings.ToLower(c.operands[0])], c.operands[1:]
	if strings.EqualFold(c.operands[0], "load") {
		return Answer{Fallback: Files}
	}
	if len(words) == 0 {
		return pick("", c.Current, plain(option.SacctmgrEntities[verb]...), true)
	}
	entity := strings.ToLower(words[0])
	if !slices.Contains(option.SacctmgrEntities[verb], entity) {
		entity = strings.TrimSuffix(entity, "s")
	}
	return c.conditions(entity, verb, words[1:])
}

// conditions completes the words after an entity of sacctmgr: names, where and set,
// and keys.
func (c *cursor) conditions(entity, verb string, words []string) Answer {
	if key, text, has := strings.Cut(c.Current, "="); has {
		return c.value(keyDomain(entity, key), key+"=", text)
	}
	mode := verb
	if verb == "modify" {
		mode = "where"
		if at := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "set") }); at >= 0 {
			mode, words = "set", words[at+1:]
		}
	}
	items := unused(option.SacctmgrKeys(entity, mode), words)
	if verb == "modify" && mode == "where" {
		items = append(unused([]string{"where", "set"}, words), items...)
	} else if verb == "delete" {
		items = append(unused([]string{"where"}, words), items...)
	}
	a := pick("", c.Current, items, true)
	if d, ok := entityNames[entity]; ok && len(words) == 0 && mode != "set" && verb != "add" {
		names := c.value(d, "", c.Current)
		a.Items, a.List = append(names.Items, a.Items...), names.List
	}
	return a
}

func (c *cursor) sreport() Answer {
	switch len(c.operands) {
	case 0:
		return c.verbs()
	case 1:
		return pick("", c.Current, plain(option.SreportNames[strings.ToLower(c.operands[0])]...), true)
	}
	if key, text, has := strings.Cut(c.Current, "="); has {
		return c.value(keyDomain("", key), key+"=", text)
	}
	return pick("", c.Current, unused(option.SreportKeys, c.operands[2:]), true)
}
