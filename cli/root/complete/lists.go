package complete

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/completion"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the interface of the cluster that completion needs.
type Cluster interface {
	User() string
	Namespace() string
	Server() string
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Steps(ctx context.Context, f jobs.StepFilter) (*status.StepList, error)
	Nodes(ctx context.Context) (*status.NodeList, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Reservations(ctx context.Context) (*status.ReservationList, error)
	Licenses(ctx context.Context) (*status.LicenseList, error)
	Associations(ctx context.Context) (*status.AcctState, error)
}

// lists requests objects from the cluster or the cache.
type lists struct {
	p          *stdio.Process
	connect    func(*stdio.Process) (Cluster, error)
	kubeconfig string

	cache *cache
}

// source is a request whose response contains several kinds of values.
type source struct {
	name string
	ask  func(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error)
}

var (
	jobSource   = source{"jobs", askJobs}
	stepSource  = source{"steps", askSteps}
	nodeSource  = source{"nodes", askNodes}
	partSource  = source{"partitions", askPartitions}
	resvSource  = source{"reservations", askReservations}
	licSource   = source{"licenses", askLicenses}
	assocSource = source{"associations", askAssociations}
)

var sources = map[option.Kind]source{
	option.Jobs: jobSource, option.JobNames: jobSource, option.Steps: stepSource, option.Nodes: nodeSource,
	option.Features: nodeSource, option.GRES: nodeSource,
	option.Partitions: partSource, option.Reservations: resvSource, option.Licenses: licSource,
	option.Accounts: assocSource, option.QOS: assocSource,
	option.Users: assocSource, option.WCKeys: assocSource, option.Clusters: assocSource,
}

// get returns the items of a kind. It returns none if the cluster does not respond in
// time, or if the user disabled requests as in Slurm's completion.
func (l *lists) get(ctx context.Context, k option.Kind) []completion.Item {
	s, ok := sources[k]
	if !ok || l.p.Env("SLURM_COMP_VALUE") == "0" {
		return nil
	}
	if l.kubeconfig != "" {
		lookup := l.p.LookupEnv
		l.p.LookupEnv = func(name string) (string, bool) {
			if name == "KUBECONFIG" {
				return l.kubeconfig, true
			}
			return lookup(name)
		}
		l.kubeconfig = ""
	}
	if l.cache == nil {
		l.cache = openCache(l.p)
	}
	if items, fresh := l.cache.get(s.name, k); fresh {
		return items
	}
	// The rest of the time is for storing the failure.
	ctx, cancel := context.WithTimeout(ctx, patience(l.p)*3/4)
	defer cancel()
	c, err := l.connect(l.p)
	var got map[option.Kind][]completion.Item
	if err == nil {
		got, err = s.ask(ctx, c)
	}
	l.cache.put(s.name, got, err)
	items, _ := l.cache.get(s.name, k)
	return items
}

// maxJobs is the maximum number of stored jobs. The caller's own jobs have precedence,
// then the newest.
const maxJobs = 5000

func askJobs(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	fields := []string{"id", "name", "user", "state", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset"}
	me := c.User()
	own := new(status.JobList)
	if me != "" {
		var err error
		if own, err = c.Jobs(ctx, jobs.Filter{Users: []string{me}, Fields: fields}); err != nil {
			return nil, err
		}
	}
	// A very long queue may exceed the time limit; the own jobs are sufficient then.
	list, err := c.Jobs(ctx, jobs.Filter{Fields: fields})
	if err != nil {
		if list = own; me == "" {
			return nil, err
		}
	}
	slices.SortStableFunc(list.Items, func(a, b status.Job) int {
		if mine := a.User == me; mine != (b.User == me) {
			if mine {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.ID, a.ID)
	})
	if len(list.Items) > maxJobs {
		list.Items = list.Items[:maxJobs]
	}
	var ids, names []completion.Item
	seen := map[string]bool{}
	for i := range list.Items {
		j := &list.Items[i]
		id := string(format.AppendJobID(nil, j))
		help := j.Name + " " + j.State
		if j.User != me {
			help += " " + j.User
		}
		if whole, tasks, ok := strings.Cut(id, "_["); ok {
			id, help = whole, help+" ["+tasks
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, completion.Item{Text: id, Help: help, State: j.State, Own: j.User == me})
		}
		if !seen["="+j.Name] {
			seen["="+j.Name] = true
			names = append(names, completion.Item{Text: j.Name, Help: j.State, Own: j.User == me})
		}
	}
	return map[option.Kind][]completion.Item{option.Jobs: ids, option.JobNames: names}, nil
}

func askSteps(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	list, err := c.Steps(ctx, jobs.StepFilter{})
	if err != nil {
		return nil, err
	}
	me := c.User()
	var items []completion.Item
	for _, own := range []bool{true, false} {
		for i := range list.Items {
			if s := &list.Items[i]; (s.User == me) == own {
				items = append(items, completion.Item{Text: s.ID, Help: s.Name + " " + s.State, Own: own})
			}
		}
	}
	return map[option.Kind][]completion.Item{option.Steps: items}, nil
}

func askNodes(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var names []completion.Item
	features, gres := map[string]int{}, map[string]int{}
	for i := range list.Items {
		n := &list.Items[i]
		names = append(
			names,
			completion.Item{
				Text: n.Name,
				Help: strings.ToLower(strings.Join(append([]string{n.State}, n.Flags...), "+")),
			},
		)
		for _, f := range n.Features {
			features[f]++
		}
		for _, g := range gresNames(n.GRES) {
			gres[g]++
		}
	}
	return map[option.Kind][]completion.Item{
		option.Nodes:    names,
		option.Features: counted(features),
		option.GRES:     counted(gres),
	}, nil
}

// gresNames returns the names in gpu:a100:4(S:0),fpga:1: gpu, gpu:a100 and fpga.
func gresNames(text string) []string {
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		part, _, _ = strings.Cut(part, "(")
		fields := strings.Split(part, ":")
		if n := len(fields) - 1; n > 0 {
			if _, err := strconv.Atoi(fields[n]); err == nil {
				fields = fields[:n]
			}
		}
		for i := range fields {
			if name := strings.Join(fields[:i+1], ":"); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// counted returns items with the number of nodes that have them.
func counted(nodes map[string]int) []completion.Item {
	var items []completion.Item
	for name, n := range nodes {
		items = append(items, completion.Item{Text: name, Help: plural(n, "node")})
	}
	slices.SortFunc(items, func(a, b completion.Item) int { return strings.Compare(a.Text, b.Text) })
	return items
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func askPartitions(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	list, err := c.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	var items []completion.Item
	for i := range list.Items {
		p := &list.Items[i]
		if p.Hidden {
			continue
		}
		help := strings.ToLower(p.State) + ", " + plural(len(p.Nodes), "node")
		if p.Default {
			help += ", default"
		}
		items = append(items, completion.Item{Text: p.Name, Help: help})
	}
	return map[option.Kind][]completion.Item{option.Partitions: items}, nil
}

func askReservations(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	list, err := c.Reservations(ctx)
	if err != nil {
		return nil, err
	}
	var items []completion.Item
	for i := range list.Items {
		items = append(items, completion.Item{Text: list.Items[i].Name, Help: strings.ToLower(list.Items[i].State)})
	}
	return map[option.Kind][]completion.Item{option.Reservations: items}, nil
}

func askLicenses(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	list, err := c.Licenses(ctx)
	if err != nil {
		return nil, err
	}
	var items []completion.Item
	for _, l := range list.Items {
		items = append(
			items,
			completion.Item{Text: l.Name, Help: fmt.Sprintf("%d of %d free", l.Total-l.Used-l.Reserved, l.Total)},
		)
	}
	return map[option.Kind][]completion.Item{option.Licenses: items}, nil
}

func askAssociations(ctx context.Context, c Cluster) (map[option.Kind][]completion.Item, error) {
	state, err := c.Associations(ctx)
	if err != nil {
		return nil, err
	}
	got := map[option.Kind][]completion.Item{option.Clusters: {{Text: cmp.Or(state.Cluster, "berth")}}}
	keys := map[string]int{}
	for i := range state.Accounts {
		got[option.Accounts] = append(
			got[option.Accounts],
			completion.Item{Text: state.Accounts[i].Name, Help: state.Accounts[i].Description},
		)
	}
	for i := range state.Users {
		u := &state.Users[i]
		got[option.Users] = append(got[option.Users], completion.Item{Text: u.Name, Help: u.DefaultAccount})
		for _, k := range u.WCKeys {
			keys[k]++
		}
	}
	for i := range state.QOS {
		got[option.QOS] = append(
			got[option.QOS],
			completion.Item{Text: state.QOS[i].Name, Help: state.QOS[i].Description},
		)
	}
	for k := range keys {
		got[option.WCKeys] = append(got[option.WCKeys], completion.Item{Text: k})
	}
	slices.SortFunc(got[option.WCKeys], func(a, b completion.Item) int { return strings.Compare(a.Text, b.Text) })
	return got, nil
}
