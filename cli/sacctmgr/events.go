package sacctmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

var eventColumns = []column{
	col(10, "Cluster"), col(20, "Cluster Nodes", "ClusterNodes"), col(13, "Duration"), col(19, "TimeEnd", "End"), col(7, "Event"), col(8, "EventRaw"),
	{[]string{"NodeName"}, format.Field{Name: "NodeName", Width: 15, Left: true}}, col(30, "Reason"), col(19, "TimeStart", "Start"),
	col(6, "State"), col(8, "StateRaw"), col(20, "TRES"), col(10, "User"),
}

// stateRaw are Slurm's numbers of the states that events have.
var stateRaw = map[string]string{"DOWN": "1", "DOWN*": "1025", "DRAIN": "514"}

// eventAsked is what was asked of a list of events.
type eventAsked struct {
	query                              status.EventQuery
	nodes, states, users, why, cluster []string
	kind                               string // "Cluster", "Node", ""
	format                             string
	fewest, most                       int64 // CPUs; 0: any
}

// showEvents lists the times in which nodes took no jobs, and what the cluster
// had.
func (o *Options) showEvents(ctx context.Context, words []string) error {
	now := o.p.Now()
	y, m, d := now.Date()
	a := &eventAsked{format: "Cluster,NodeName,Start,End,State,Reason,User"}
	a.query.Start = time.Date(y, m, d-1, 0, 0, 0, 0, now.Location()).Unix()
	for _, x := range pairs(words) {
		if err := o.eventCondition(a, x); err != nil {
			return o.explain(err)
		}
	}
	at, fields, err := chosen(eventColumns, a.format)
	if err != nil {
		return o.explain(err)
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	list, err := server.NodeEvents(ctx, &a.query)
	if err != nil {
		return err
	}
	var rows []row
	for i := range list.Items {
		if e := &list.Items[i]; a.pass(e, list.Cluster) {
			rows = append(rows, o.eventRow(e, list))
		}
	}
	return o.write(eventColumns, at, fields, rows)
}

func (o *Options) eventCondition(a *eventAsked, x pair) (err error) {
	switch {
	case x.key == "" && (oneOf(x.value, "where", 5) || oneOf(x.value, "All_Clusters", 6)):
	case x.key == "" && oneOf(x.value, "All_Time", 6):
		a.query.Start = 0
	case oneOf(x.key, "Clusters", 1):
		a.cluster = x.lower()
	case oneOf(x.key, "CondFlags", 2):
		a.query.Open = slices.Contains(x.lower(), "open")
	case oneOf(x.key, "End", 2):
		a.query.End = o.instant(x.value)
	case oneOf(x.key, "Event", 1):
		if a.kind = map[string]string{"c": "Cluster", "n": "Node"}[strings.ToLower(x.value + " ")[:1]]; a.kind == "" {
			err = refusal(fmt.Sprintf(" Unknown event type: '%s'  Valid events are Cluster and Node.", x.value))
		}
	case x.is("Format"):
		a.format = x.value
	case oneOf(x.key, "MaxCPUs", 2):
		a.most, err = count(x)
	case oneOf(x.key, "MinCPUs", 2):
		a.fewest, err = count(x)
	case oneOf(x.key, "Nodes", 1):
		if a.nodes, err = hostlist.Expand(x.value); err != nil {
			err = refusal(" Invalid node list: " + x.value)
		}
	case oneOf(x.key, "Reason", 1):
		a.why = x.list()
	case oneOf(x.key, "Start", 4):
		a.query.Start = o.instant(x.value)
	case oneOf(x.key, "States", 4):
		err = a.wantStates(x.lower())
	case oneOf(x.key, "User", 1):
		a.users, a.kind = x.list(), "Node"
	default:
		err = refusal(" Unknown condition: " + x.text)
	}
	return err
}

func count(x pair) (n int64, err error) {
	if _, err := fmt.Sscan(x.value, &n); err != nil || n < 0 {
		return 0, refusal(" Bad number: " + x.text)
	}
	return n, nil
}

// wantStates: events that go on, unless a time is given as well.
func (a *eventAsked) wantStates(names []string) error {
	known := []string{"drain", "fail", "unknown", "down", "idle", "allocated", "mixed", "future"}
	for _, n := range names {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, n) }) {
			return &slurmerr.Error{Kind: slurmerr.Fatal, Message: "unrecognized job state value", Before: []string{
				"Invalid state: " + n, "Valid node states are: DRAIN FAIL UNKNOWN DOWN IDLE ALLOCATED ? MIXED FUTURE "}}
		}
		a.states = append(a.states, n)
	}
	a.kind = "Node"
	return nil
}

// instant reads a time; one that is none counts as the beginning of time, as in
// Slurm, and is complained about.
func (o *Options) instant(text string) int64 {
	t, err := value.PastInstant(text, o.p.Now())
	if err != nil {
		pos := 0
		if at, ok := err.(*value.InstantError); ok { //nolint:errorlint // it comes straight from the parser
			pos = at.Pos
		}
		fmt.Fprintf(o.p.Err, "Invalid time specification (pos=%d): %s\n", pos, text)
		return 0
	}
	return t.Unix()
}

func (a *eventAsked) pass(e *status.AcctEvent, cluster string) bool {
	cpus := int64(0)
	for part := range strings.SplitSeq(e.TRES, ",") {
		_, _ = fmt.Sscanf(part, "cpu=%d", &cpus)
	}
	kind := "Node"
	if e.Node == "" {
		kind = "Cluster"
	}
	return pass(a.cluster, strings.ToLower(cluster)) && pass(a.nodes, e.Node) && pass(a.users, e.User) && pass(a.why, e.Reason) &&
		(a.kind == "" || a.kind == kind) && cpus >= a.fewest && (a.most == 0 || cpus <= a.most) &&
		(len(a.states) == 0 || slices.ContainsFunc(a.states, func(s string) bool { return strings.HasPrefix(strings.ToLower(e.State), s) }))
}

func (o *Options) eventRow(e *status.AcctEvent, list *status.EventList) row {
	kind, raw := "Node", "2"
	if e.Node == "" {
		kind, raw = "Cluster", "1"
	}
	end, until := "Unknown", list.Time
	if e.End != 0 {
		end, until = o.stamp(e.End), e.End
	}
	who := e.User
	if who != "" {
		who = fmt.Sprintf("%s(%d)", e.User, e.UserID)
	}
	state := stateRaw[e.State]
	if state == "" {
		state = "0"
	}
	return row{values: map[string]string{
		"Cluster": list.Cluster, "Cluster Nodes": e.Nodes, "Duration": clock(int32(min(until-e.Start, 1<<31-1))), "TimeEnd": end, "Event": kind, "EventRaw": raw,
		"NodeName": e.Node, "Reason": e.Reason, "TimeStart": o.stamp(e.Start), "State": e.State, "StateRaw": state, "TRES": e.TRES, "User": who,
	}}
}

// stamp writes an instant as SLURM_TIME_FORMAT says.
func (o *Options) stamp(at int64) string {
	s := format.Settings{Now: o.p.Now().Unix(), Location: o.p.Now().Location(), Layout: format.TimeLayout(o.p.Env("SLURM_TIME_FORMAT"))}
	return string(format.AppendInstant(nil, at, "Unknown", &s))
}
