package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// leaves are the values of an object by their paths, such as max.jobs.per.count. What is
// null is not there. The values are lists, strings, numbers and booleans.
type leaves map[string]json.RawMessage

// leavesOf returns the values of an object.
func leavesOf(object json.RawMessage) (leaves, error) {
	out := leaves{}
	if err := out.add("", object); err != nil {
		return nil, err
	}
	return out, nil
}

func (l leaves) add(path string, value json.RawMessage) error {
	var object map[string]json.RawMessage
	switch {
	case string(value) == "null":
		return nil
	case len(value) > 0 && value[0] != '{' && path != "":
		l[path] = value
		return nil
	case json.Unmarshal(value, &object) != nil:
		return badField(path)
	}
	if set, ok := object["set"]; ok && object["number"] != nil { // of later documents
		switch {
		case string(object["infinite"]) == "true":
			l[path] = json.RawMessage("-1")
		case string(set) == "true":
			l[path] = object["number"]
		}
		return nil
	}
	for name, v := range object {
		if path != "" {
			name = path + "." + name
		}
		if err := l.add(name, v); err != nil {
			return err
		}
	}
	return nil
}

// take decodes the value at the path into to and removes it. It reports whether there was
// one.
func (l leaves) take(path string, to any) (bool, error) {
	raw, ok := l[path]
	if !ok {
		return false, nil
	}
	delete(l, path)
	if err := decodeLeaf(raw, to); err != nil {
		return false, badField(path)
	}
	return true, nil
}

// decodeLeaf decodes a value: a number, which is 0 for "no limit" (negative numbers), a
// text, a list of texts, for which one text is enough, or counts of TRES.
func decodeLeaf(raw json.RawMessage, to any) error {
	switch p := to.(type) {
	case *int32:
		n, err := wholeNumber(raw, math.MaxInt32)
		*p = int32(n)
		return err
	case *int64:
		n, err := wholeNumber(raw, math.MaxInt64)
		*p = n
		return err
	case *[]string:
		var one string
		if json.Unmarshal(raw, &one) == nil {
			*p = []string{one}
			return nil
		}
		return json.Unmarshal(raw, p)
	case *map[string]int64:
		return tresCounts(raw, p)
	}
	return json.Unmarshal(raw, to)
}

func wholeNumber(raw json.RawMessage, most int64) (int64, error) {
	var n int64
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, err
	}
	if n > most {
		return 0, fmt.Errorf("%d is too large", n)
	}
	return max(0, n), nil
}

// tresCounts decodes a list of TRES as documents have it. An empty one changes nothing.
func tresCounts(raw json.RawMessage, to *map[string]int64) error {
	var list []struct {
		Type  string
		Name  *string
		Count json.RawMessage
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return err
	}
	out := map[string]int64{}
	for i := range list {
		t := &list[i]
		name := t.Type
		if t.Name != nil && *t.Name != "" {
			name += "/" + *t.Name
		}
		n, err := wholeNumber(t.Count, math.MaxInt64)
		if err != nil || name == "" {
			return fmt.Errorf("TRES %q: %w", name, err)
		}
		out[name] = n
	}
	*to = out
	return nil
}

// none returns an error if a value is left that says something. The names in but, and
// everything below them, are what documents have and nobody sets.
func (l leaves) none(but ...string) error {
	for _, path := range slices.Sorted(maps.Keys(l)) {
		ignored := slices.ContainsFunc(but, func(name string) bool {
			return path == name || strings.HasPrefix(path, name+".")
		})
		switch text := string(l[path]); {
		case ignored, text == `""`, strings.Trim(text, "[] \n\t\r") == "":
		default:
			return invalid(errRejected, "Berth cannot set the field '%s'", path)
		}
	}
	return nil
}

// badField is the error about a value of the wrong type.
func badField(path string) *failure {
	f := invalid(errRejected, "Failed to parse field '%s'", path)
	f.source = "_parser_run"
	return f
}

// missingField is the error about an entry without a field. It names the function that
// Slurm adds entries with.
func missingField(name, source string, code int) *failure {
	return &failure{code: code, number: errUnspecified, source: source, before: []format.Object{
		per("description", "Missing required field '"+name+"'", "source", "_parser_run")}}
}

// errNoPath is the number of a body without the list that the path is about.
const errNoPath = 9200

// entries returns the entries of a list in the body.
func entries(body []byte, name string) ([]leaves, error) {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil {
		return nil, errUnreadable
	}
	raw, ok := in[name]
	if !ok {
		return nil, &failure{code: http.StatusBadRequest, number: errNoPath, source: name,
			description: "Query parameter not found"}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, &failure{code: http.StatusBadRequest, number: errNoPath, source: name,
			description: "Query parameter must be a list"}
	}
	out := make([]leaves, len(list))
	for i, one := range list {
		var err error
		if out[i], err = leavesOf(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// limit is a limit of an association or a QOS in documents.
type limit struct {
	path string
	of   func(*status.Limits) any
}

var associationLimits = []limit{
	{"max.jobs.per.count", func(l *status.Limits) any { return &l.GrpJobs }},
	{"max.jobs.per.submitted", func(l *status.Limits) any { return &l.GrpSubmitJobs }},
	{"max.jobs.per.wall_clock", func(l *status.Limits) any { return &l.MaxWall }},
	{"max.jobs.active", func(l *status.Limits) any { return &l.MaxJobs }},
	{"max.jobs.total", func(l *status.Limits) any { return &l.MaxSubmitJobs }},
	{"max.tres.total", func(l *status.Limits) any { return &l.GrpTRES }},
	{"max.tres.minutes.per.job", func(l *status.Limits) any { return &l.MaxTRESMins }},
	{"max.tres.group.minutes", func(l *status.Limits) any { return &l.GrpTRESMins }},
	{"max.tres.minutes.total", func(l *status.Limits) any { return &l.GrpTRESMins }},
	{"max.tres.group.active", func(l *status.Limits) any { return &l.GrpTRESRunMins }},
	{"max.tres.per.job", func(l *status.Limits) any { return &l.MaxTRES }},
	{"max.tres.per.node", func(l *status.Limits) any { return &l.MaxTRESPerNode }},
	{"max.per.account.wall_clock", func(l *status.Limits) any { return &l.GrpWall }},
	{"shares_raw", func(l *status.Limits) any { return &l.Share }},
	{"priority", func(l *status.Limits) any { return &l.Priority }},
}

var limitsOfQOS = []limit{
	{"limits.max.active_jobs.count", func(l *status.Limits) any { return &l.GrpJobs }},
	{"limits.max.tres.total", func(l *status.Limits) any { return &l.GrpTRES }},
	{"limits.max.tres.minutes.per.qos", func(l *status.Limits) any { return &l.GrpTRESMins }},
	{"limits.max.tres.minutes.per.job", func(l *status.Limits) any { return &l.MaxTRESMins }},
	{"limits.max.tres.per.account", func(l *status.Limits) any { return &l.MaxTRESPerAccount }},
	{"limits.max.tres.per.job", func(l *status.Limits) any { return &l.MaxTRES }},
	{"limits.max.tres.per.node", func(l *status.Limits) any { return &l.MaxTRESPerNode }},
	{"limits.max.tres.per.user", func(l *status.Limits) any { return &l.MaxTRESUser }},
	{"limits.max.wall_clock.per.qos", func(l *status.Limits) any { return &l.GrpWall }},
	{"limits.max.wall_clock.per.job", func(l *status.Limits) any { return &l.MaxWall }},
	{"limits.max.jobs.active_jobs.per.account", func(l *status.Limits) any { return &l.MaxJobsPerAccount }},
	{"limits.max.jobs.active_jobs.per.user", func(l *status.Limits) any { return &l.MaxJobsPerUser }},
	{"limits.max.jobs.per.account", func(l *status.Limits) any { return &l.MaxSubmitJobsPerAccount }},
	{"limits.max.jobs.per.user", func(l *status.Limits) any { return &l.MaxSubmitJobsPerUser }},
	{"limits.min.tres.per.job", func(l *status.Limits) any { return &l.MinTRES }},
}

// takeLimits moves the limits of the table into to.
func (l leaves) takeLimits(table []limit, to *status.Limits) error {
	for _, x := range table {
		if _, err := l.take(x.path, x.of(to)); err != nil {
			return err
		}
	}
	return nil
}
