package query

import (
	"net/url"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// separators are what separates two values of a query that is not decoded yet.
var separators = []string{"&", ",", "%2C", "%2c", "%20", "+"}

// CheckSize returns an error for a URL's query that is beyond its budgets, which are far
// above what the commands send. It is called before the query is parsed.
func CheckSize(raw string) error {
	if err := bounds.QueryBytes.Check(int64(len(raw))); err != nil {
		return err
	}
	terms := 1
	for _, s := range separators {
		terms += strings.Count(raw, s)
	}
	return bounds.QueryTerms.Check(int64(terms))
}

// IsWatch reports whether the query requests a watch.
func IsWatch(v url.Values) bool { return v.Get("watch") == "true" || v.Get("watch") == "1" }

// List returns the values of a parameter that is a comma-separated list and may be
// repeated.
func List(v url.Values, name string) []string { return SplitList(v[name]...) }

// SplitList splits texts at commas and drops blanks and empty parts.
func SplitList(texts ...string) []string {
	var out []string
	for _, text := range texts {
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// Parse returns the filters of GET jobs.
func Parse(v url.Values) (table.Query, error) {
	q := table.Query{
		Users: List(v, "user"), Partitions: List(v, "partition"), Names: List(v, "name"),
		Accounts: List(v, "account"), QOS: List(v, "qos"),
	}
	refs := newRefAdder(&q)
	for _, text := range splitRefs(v["id"]) {
		r, ok := ParseRef(text)
		if !ok {
			r = Ref{ID: noID}
		}
		refs.add(r)
	}
	refs.finish()
	AddStates(&q, List(v, "state"))
	var err error
	q.Nodes, err = hostlist.ParsePattern(v["nodes"]...)
	return q, err
}

// AddStates adds job states to the query; "all" stands for every state.
func AddStates(q *table.Query, states []string) {
	for _, s := range states {
		if strings.EqualFold(s, "all") {
			q.AllStates = true
		}
		q.States = append(q.States, strings.ToUpper(s))
	}
}
