package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
)

// Member is a cluster that commands find by its kubeconfig or context (kube.Locate), or the
// present one.
type Member struct {
	Name    string // as the present cluster calls itself; of another one, as -M takes it
	Host    string // of its API server
	Present bool   // the cluster that is used without -M
	// Federation is empty, and ID is 0, if the cluster is in no federation or does not answer.
	Federation string
	ID         int
	// Variables choose the cluster (stdio.Process.WithEnv); nil: the present one.
	Variables map[string]string
	Client    *Client // nil if Err is set
	Err       error   // why it cannot be used
	server    string  // URL
}

// Members returns the present cluster, then all others that Locate finds, sorted by name and each
// once. All are asked at the same time; one that does not answer costs a second.
func Members(ctx context.Context, p *stdio.Process) []Member {
	names := append([]string{""}, kube.Clusters(p)...)
	out := make([]Member, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { out[i] = member(ctx, p, name) })
	}
	wg.Wait()
	var seen []string
	return slices.DeleteFunc(out, func(m Member) bool {
		known := slices.Contains(seen, m.server)
		seen = append(seen, m.server)
		return known
	})
}

// member asks the cluster of that name; "": the present one.
func member(ctx context.Context, p *stdio.Process, name string) Member {
	m := Member{Name: cmp.Or(name, "in use"), Present: name == ""}
	if !m.Present {
		m.Variables, _ = kube.Locate(p, name)
		p = p.WithEnv(m.Variables)
	}
	c, err := Connect(p)
	if err != nil {
		m.Err = err
		return m
	}
	m.server = c.api.Config().Server
	if m.Err = Probe(ctx, p, m.Name); m.Err != nil {
		return m
	}
	var info status.ClusterInfo
	if info, m.Err = c.info(ctx); m.Err != nil {
		return m
	}
	m.Client, m.Host = c, info.Host
	var spec struct {
		ClusterName string `json:"clusterName"`
		Federation  struct {
			Name string `json:"name"`
			ID   int    `json:"id"`
		} `json:"federation"`
	}
	if len(info.Spec) > 0 {
		if m.Err = json.Unmarshal(info.Spec, &spec); m.Err != nil {
			return m
		}
	}
	m.Name = cmp.Or(name, spec.ClusterName, "berth")
	m.Federation, m.ID = spec.Federation.Name, spec.Federation.ID
	return m
}

// info reads the description of the cluster.
func (c *Client) info(ctx context.Context) (out status.ClusterInfo, err error) {
	err = queueError(c.api.Get(ctx, infoPath, nil, &out))
	return out, err
}

// FederationOf returns the members of the present cluster's federation, the present one first,
// and errors that name the clusters that do not answer and those that share a number. Without a
// federation it returns no members and no errors.
func FederationOf(all []Member) (members []Member, failures []error) {
	if len(all) == 0 || all[0].Federation == "" {
		return nil, nil
	}
	for _, m := range all {
		if m.Err != nil {
			failures = append(failures, m.Err)
			continue
		}
		if m.Federation != all[0].Federation {
			continue
		}
		if i := slices.IndexFunc(members, func(o Member) bool { return o.ID == m.ID }); i >= 0 {
			failures = append(failures, slurmerr.Newf(slurmerr.Refused, "clusters %s and %s have the same number (%d) "+
				"in federation %s, so that ids of their jobs clash", members[i].Name, m.Name, m.ID, m.Federation))
		}
		members = append(members, m)
	}
	return members, failures
}

// Federated lists the jobs, steps and nodes of several clusters together. Everything else is that
// of the present cluster. Safe for concurrent use.
type Federated struct {
	*Client
	members []Member
	report  func(error)
}

// ConnectFederation returns a client for the federation of the present cluster, and for that
// cluster alone if it is in none. report is called with the error of each cluster that cannot be
// used, also if that is found out later.
func ConnectFederation(ctx context.Context, p *stdio.Process, report func(error)) (*Federated, error) {
	all := Members(ctx, p)
	if err := all[0].Err; err != nil {
		return nil, err
	}
	members, failures := FederationOf(all)
	for _, err := range failures {
		report(err)
	}
	if members == nil {
		members = all[:1]
	}
	return &Federated{all[0].Client, members, report}, nil
}

// gather calls get for each member at the same time, and add for each answer, in the order of the
// members. It fails if every member does, with the error of the first one.
func gather[T any](f *Federated, get func(*Client) (T, error), add func(*Member, T)) error {
	answers, failures := make([]T, len(f.members)), make([]error, len(f.members))
	var wg sync.WaitGroup
	for i := range f.members {
		wg.Go(func() { answers[i], failures[i] = get(f.members[i].Client) })
	}
	wg.Wait()
	if !slices.Contains(failures, nil) {
		return failures[0]
	}
	for i, err := range failures {
		if err != nil {
			f.report(err)
			continue
		}
		add(&f.members[i], answers[i])
	}
	return nil
}

// Jobs lists the jobs of all members, in a federation with the names of their clusters.
func (f *Federated) Jobs(ctx context.Context, filter Filter) (*status.JobList, error) {
	var out *status.JobList
	err := gather(f, func(c *Client) (*status.JobList, error) { return c.Jobs(ctx, filter) },
		func(m *Member, l *status.JobList) {
			for i := range l.Items {
				if m.Federation != "" {
					l.Items[i].Cluster = m.Name
				}
			}
			if out == nil {
				out = l
				return
			}
			out.Time = max(out.Time, l.Time)
			out.UnknownUsers = common(out.UnknownUsers, l.UnknownUsers)
			out.Items = append(out.Items, l.Items...)
		})
	return out, err
}

// Steps lists the steps of all members.
func (f *Federated) Steps(ctx context.Context, filter StepFilter) (*status.StepList, error) {
	var out *status.StepList
	err := gather(f, func(c *Client) (*status.StepList, error) { return c.Steps(ctx, filter) },
		func(_ *Member, l *status.StepList) {
			if out == nil {
				out = l
				return
			}
			out.Time = max(out.Time, l.Time)
			out.UnknownUsers = common(out.UnknownUsers, l.UnknownUsers)
			out.Items = append(out.Items, l.Items...)
		})
	return out, err
}

// Nodes lists the nodes of all members.
func (f *Federated) Nodes(ctx context.Context) (*status.NodeList, error) {
	var out *status.NodeList
	err := gather(f, func(c *Client) (*status.NodeList, error) { return c.Nodes(ctx) },
		func(_ *Member, l *status.NodeList) {
			if out == nil {
				out = l
				return
			}
			out.Items = append(out.Items, l.Items...)
		})
	return out, err
}

// common returns the names that are in both lists.
func common(a, b []string) []string {
	return slices.DeleteFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}
