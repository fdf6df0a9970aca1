package sacctmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

var eventColumns = []column{
	col(10, "Cluster"), col(20, "Cluster Nodes", "ClusterNodes"), col(13, "Duration"), col(19, "TimeEnd", "End"),
	col(7, "Event"), col(8, "EventRaw"),
	{[]columnName{{"NodeName", 1}}, format.Field{Name: "NodeName", Width: 15, Left: true}},
	col(30, "Reason"), col(19, "TimeStart", "Start"), col(6, "State"), col(8, "StateRaw"), col(20, "TRES"),
	col(10, "User"),
}

// stateNumbers are Slurm's numbers of the states that events have.
var stateNumbers = map[string]string{"DOWN": "1", "DOWN*": "1025", "DRAIN": "514"}

// The kinds of events.
const (
	clusterEvent = "Cluster"
	nodeEvent    = "Node"
)

func kindOf(e *status.AcctEvent) string {
	if e.Node == "" {
		return clusterEvent
	}
	return nodeEvent
}

// eventFilter has the arguments of list events.
type eventFilter struct {
	options                                 *Options
	query                                   status.EventQuery
	nodes, states, users, reasons, clusters []string
	kind                                    string // "": any
	format                                  string
	minCPUs, maxCPUs                        int64 // 0: any
}

// eventWords are in Slurm's order.
var eventWords = keyvalue.Table[*eventFilter]{
	{Name: "where", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*eventFilter]},
	{Name: "All_Clusters", Least: 6, Form: keyvalue.Word, Set: keyvalue.Ignored[*eventFilter]},
	{Name: "All_Time", Least: 6, Form: keyvalue.Word, Set: func(f *eventFilter, _ keyvalue.Pair) error {
		f.query.Start = 0
		return nil
	}},
	{Name: "Clusters", Least: 1, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.clusters = p.LowerList()
		return nil
	}},
	{Name: "CondFlags", Least: 2, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.query.Open = slices.Contains(p.LowerList(), "open")
		return nil
	}},
	{Name: "End", Least: 2, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.query.End = f.options.parseTime(p.Value)
		return nil
	}},
	{Name: "Event", Least: 1, Set: (*eventFilter).setKind},
	{Name: "Format", Least: 3, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.format = p.Value
		return nil
	}},
	{Name: "MaxCPUs", Least: 2, Set: func(f *eventFilter, p keyvalue.Pair) (err error) {
		f.maxCPUs, err = parseCount(p)
		return err
	}},
	{Name: "MinCPUs", Least: 2, Set: func(f *eventFilter, p keyvalue.Pair) (err error) {
		f.minCPUs, err = parseCount(p)
		return err
	}},
	{Name: "Nodes", Least: 1, Set: func(f *eventFilter, p keyvalue.Pair) (err error) {
		if f.nodes, err = hostlist.ExpandLenient(p.Value); err != nil {
			return refusef(" Invalid node list: %s", p.Value)
		}
		return nil
	}},
	{Name: "Reason", Least: 1, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.reasons = p.List()
		return nil
	}},
	{Name: "Start", Least: 4, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.query.Start = f.options.parseTime(p.Value)
		return nil
	}},
	{Name: "States", Least: 4, Set: (*eventFilter).setStates},
	{Name: "User", Least: 1, Set: func(f *eventFilter, p keyvalue.Pair) error {
		f.users, f.kind = p.List(), nodeEvent
		return nil
	}},
}

func (f *eventFilter) setKind(p keyvalue.Pair) error {
	switch strings.ToLower(p.Value + " ")[:1] {
	case "c":
		f.kind = clusterEvent
	case "n":
		f.kind = nodeEvent
	default:
		return refusef(" Unknown event type: '%s'  Valid events are Cluster and Node.", p.Value)
	}
	return nil
}

func parseCount(p keyvalue.Pair) (n int64, err error) {
	if _, err := fmt.Sscan(p.Value, &n); err != nil || n < 0 {
		return 0, refusef(" Bad number: %s", p.Text)
	}
	return n, nil
}

// eventStates are the states of nodes that Slurm knows here.
var eventStates = []string{"drain", "fail", "unknown", "down", "idle", "allocated", "mixed", "future"}

func (f *eventFilter) setStates(p keyvalue.Pair) error {
	for _, name := range p.LowerList() {
		if !slices.ContainsFunc(eventStates, func(s string) bool { return strings.HasPrefix(s, name) }) {
			return &slurmerr.Error{Kind: slurmerr.Fatal, Message: "unrecognized job state value", Before: []string{
				"Invalid state: " + name,
				"Valid node states are: DRAIN FAIL UNKNOWN DOWN IDLE ALLOCATED ? MIXED FUTURE "}}
		}
		f.states = append(f.states, name)
	}
	f.kind = nodeEvent
	return nil
}

// showEvents prints the times in which nodes were unavailable, and the resources
// that the cluster had.
func (o *Options) showEvents(ctx context.Context, words []string) error {
	now := o.p.Now()
	y, m, d := now.Date()
	f := &eventFilter{options: o, format: "Cluster,NodeName,Start,End,State,Reason,User"}
	f.query.Start = time.Date(y, m, d-1, 0, 0, 0, 0, now.Location()).Unix()
	for _, p := range keyvalue.ParseAll(words) {
		if known, err := eventWords.Set(f, p); err != nil || !known {
			return o.explain(cmp.Or(err, refusef(" Unknown condition: %s", p.Text)))
		}
	}
	selected, err := selectColumns(eventColumns, f.format)
	if err != nil {
		return o.explain(err)
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	list, err := server.NodeEvents(ctx, &f.query)
	if err != nil {
		return err
	}
	var rows []row
	for i := range list.Items {
		if e := &list.Items[i]; f.includes(e, list.Cluster) {
			rows = append(rows, o.eventRow(e, list))
		}
	}
	return o.print(selected, rows)
}

// includes reports whether the event passes the filter.
func (f *eventFilter) includes(e *status.AcctEvent, cluster string) bool {
	inState := func(s string) bool { return strings.HasPrefix(strings.ToLower(e.State), s) }
	switch {
	case !matches(f.clusters, strings.ToLower(cluster)), !matches(f.nodes, e.Node), !matches(f.users, e.User),
		!matches(f.reasons, e.Reason), f.kind != "" && f.kind != kindOf(e):
		return false
	case len(f.states) > 0 && !slices.ContainsFunc(f.states, inState):
		return false
	}
	cpus := cpusOf(e)
	return cpus >= f.minCPUs && (f.maxCPUs == 0 || cpus <= f.maxCPUs)
}

func cpusOf(e *status.AcctEvent) int64 {
	cpus := int64(0)
	for part := range strings.SplitSeq(e.TRES, ",") {
		_, _ = fmt.Sscanf(part, "cpu=%d", &cpus)
	}
	return cpus
}

func (o *Options) eventRow(e *status.AcctEvent, list *status.EventList) row {
	kindNumber := "2"
	if kindOf(e) == clusterEvent {
		kindNumber = "1"
	}
	end, until := "Unknown", list.Time
	if e.End != 0 {
		end, until = o.formatTime(e.End), e.End
	}
	user := e.User
	if user != "" {
		user = fmt.Sprintf("%s(%d)", e.User, e.UserID)
	}
	return row{values: map[string]string{
		"Cluster": list.Cluster, "Cluster Nodes": e.Nodes, "NodeName": e.Node, "Reason": e.Reason, "TRES": e.TRES,
		"User":  user,
		"Event": kindOf(e), "EventRaw": kindNumber, "State": e.State, "StateRaw": cmp.Or(stateNumbers[e.State], "0"),
		"TimeStart": o.formatTime(e.Start), "TimeEnd": end, "Duration": clockText(int32(min(until-e.Start, 1<<31-1))),
	}}
}

// parseTime parses a time. What is none is reported and counts as the beginning
// of time, as in Slurm.
func (o *Options) parseTime(text string) int64 {
	t, err := value.PastInstant(text, o.p.Now())
	if err == nil {
		return t.Unix()
	}
	pos := 0
	var at *value.InstantError
	if errors.As(err, &at) {
		pos = at.Pos
	}
	fmt.Fprintf(o.p.Err, "Invalid time specification (pos=%d): %s\n", pos, printable.Escape(text))
	return 0
}

// formatTime formats a time according to SLURM_TIME_FORMAT.
func (o *Options) formatTime(at int64) string {
	now := o.p.Now()
	s := format.Settings{
		Now: now.Unix(), Location: now.Location(), Layout: format.TimeLayout(o.p.Env("SLURM_TIME_FORMAT")),
	}
	return string(format.AppendInstant(nil, at, "Unknown", &s))
}
