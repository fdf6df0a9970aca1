package completion

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/option"
)

// positional completes operands.
func (c *cursor) positional() Answer {
	switch c.Name {
	case "sbatch":
		return Answer{Fallback: Files}
	case "srun", "salloc":
		if len(c.operands) == 0 {
			return Answer{Fallback: Commands, From: c.from}
		}
		return Answer{Fallback: Command, From: c.from}
	case "scrontab", "sbcast":
		return Answer{Fallback: Files}
	case "scancel", "seff", "sattach":
		return c.jobs("", c.Current, nil)
	case "scontrol":
		return c.scontrol()
	case "sacctmgr":
		return c.sacctmgr()
	case "sreport":
		return c.sreport()
	}
	return Answer{}
}

// jobs completes jobs for which want returns true (nil: all), or the steps of a
// job after a dot.
func (c *cursor) jobs(prefix, text string, want func(Item) bool) Answer {
	at := strings.LastIndexByte(text, ',') + 1
	kind := option.Jobs
	if strings.Contains(text[at:], ".") || c.Name == "sattach" {
		kind = option.Steps
	}
	items := without(c.lists(kind), append(strings.Split(text[:at], ","), c.operands...))
	if want != nil {
		items = slices.DeleteFunc(items, func(i Item) bool { return !want(i) })
	}
	a := pick(prefix+text[:at], text[at:], items, false)
	a.Describe = true
	return a
}

// verbs completes the verb.
func (c *cursor) verbs() Answer {
	var items []Item
	for _, v := range option.VerbsOf(c.Name) {
		items = append(items, Item{Text: v.Name, Help: v.Help})
	}
	return pick("", c.Current, items, true)
}

// inStates returns a filter of jobs by state.
func inStates(states ...string) func(Item) bool {
	return func(i Item) bool { return i.State == "" || slices.Contains(states, i.State) }
}

// jobFilters are the filters of the jobs to which verbs of scontrol apply.
var jobFilters = map[string]func(Item) bool{
	"hold": inStates("PENDING"), "uhold": inStates("PENDING"), "holdu": inStates("PENDING"),
	"release": inStates("PENDING"),
	"top":     inStates("PENDING"), "suspend": inStates("RUNNING"), "resume": inStates("SUSPENDED"),
	"requeue": nil, "requeuehold": nil, "notify": inStates("RUNNING"), "wait_job": nil, "listpids": inStates("RUNNING"),
}

func (c *cursor) scontrol() Answer {
	if len(c.operands) == 0 {
		return c.verbs()
	}
	verb, words := strings.ToLower(c.operands[0]), c.operands[1:]
	want, ofJobs := jobFilters[verb]
	switch {
	case ofJobs && verb == "notify" && len(words) > 0:
		return Answer{}
	case ofJobs:
		if key, name, has := strings.Cut(c.Current, "="); has && strings.EqualFold(key, "jobname") {
			return c.value(option.Domain{Kind: option.JobNames}, key+"=", name)
		}
		return c.jobs("", c.Current, want)
	}
	switch verb {
	case "show":
		return c.scontrolShow(words)
	case "update":
		return c.scontrolSet(words, "JobId=", "NodeName=", "PartitionName=", "ReservationName=", "StepId=")
	case "create":
		return c.scontrolSet(words, "ReservationName=", "PartitionName=")
	case "delete":
		if len(words) == 0 {
			return c.scontrolSet(words, "ReservationName=", "PartitionName=")
		}
	case "write":
		switch len(words) {
		case 0:
			return pick("", c.Current, plain("batch_script"), true)
		case 1:
			return c.jobs("", c.Current, nil)
		}
		return Answer{Fallback: Files}
	case "cluster":
		return c.value(option.Domain{Kind: option.Clusters}, "", c.Current)
	}
	return Answer{}
}

// shownKinds are the kinds of names after scontrol show ENTITY.
var shownKinds = map[string]option.Domain{
	"job": {Kind: option.Jobs}, "jobs": {Kind: option.Jobs}, "jobid": {Kind: option.Jobs},
	"step": {Kind: option.Steps}, "steps": {Kind: option.Steps},
	"node": {Kind: option.Nodes, List: true}, "nodes": {Kind: option.Nodes, List: true},
	"partition":  {Kind: option.Partitions},
	"partitions": {Kind: option.Partitions}, "reservation": {Kind: option.Reservations},
	"reservations": {Kind: option.Reservations},
	"licenses":     {Kind: option.Licenses}, "hostnames": {Kind: option.Nodes, List: true},
	"hostlist":       {Kind: option.Nodes, List: true},
	"hostlistsorted": {Kind: option.Nodes, List: true}, "aliases": {Kind: option.Nodes},
}

func (c *cursor) scontrolShow(words []string) Answer {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) == 0 {
		if entity, text, has := strings.Cut(c.Current, "="); has { // show job=12
			return c.value(shownKinds[strings.ToLower(entity)], entity+"=", text)
		}
		return pick("", c.Current, plain(option.ScontrolEntities...), true)
	}
	if len(words) > 1 {
		return Answer{}
	}
	return c.value(shownKinds[strings.ToLower(words[0])], "", c.Current)
}

// scontrolSet completes the words after update, create and delete: the entity, then its
// keys.
func (c *cursor) scontrolSet(words []string, entities ...string) Answer {
	key, text, has := strings.Cut(c.Current, "=")
	if len(words) == 0 {
		if has {
			return c.value(keyDomain("", key), key+"=", text)
		}
		return pick("", c.Current, plain(entities...), true)
	}
	first, _, _ := strings.Cut(words[0], "=")
	entity := map[string]string{"jobid": "job", "nodename": "node", "partitionname": "partition",
		"reservationname": "reservation", "reservation": "reservation", "stepid": "step"}[strings.ToLower(first)]
	if has {
		return c.value(keyDomain(entity, key), key+"=", text)
	}
	var keys []string
	for _, k := range option.ScontrolKeys[entity] {
		keys = append(keys, k+"=")
	}
	return pick("", c.Current, unused(keys, words), true)
}

// unused returns the keys, KEY= or a word, that are not given yet.
func unused(keys, words []string) []Item {
	var items []Item
	for _, k := range keys {
		has := func(w string) bool {
			name, _, _ := strings.Cut(w, "=")
			return strings.EqualFold(strings.TrimRight(name, "+-"), strings.TrimSuffix(k, "="))
		}
		if !slices.ContainsFunc(words, has) {
			items = append(items, Item{Text: k})
		}
	}
	return items
}
