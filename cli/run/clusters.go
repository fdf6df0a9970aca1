package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// Commands that list or change something on each of several clusters, and those of which
// only one cluster can be used at a time.
var (
	onEach = map[string]bool{
		"squeue": true, "sinfo": true, "sprio": true, "sshare": true, "sacct": true, "scancel": true,
	}
	onOne = map[string]bool{"scontrol": true, "sdiag": true}
	// federated are those that list each cluster of a federation; squeue makes one list.
	federated = map[string]bool{"sinfo": true, "sprio": true, "sacct": true}
)

// comparesItself has the commands that compare the name of the present cluster themselves, in
// the order of their other checks.
var comparesItself = map[string]bool{
	"squeue": true, "sinfo": true, "sprio": true, "sacct": true, "scancel": true, "scontrol": true, "sdiag": true,
	"sbatch": true,
}

// site is one of the clusters of a command.
type site struct {
	name      string
	variables map[string]string // that choose it
	err       error             // why it cannot be used
	unknown   bool              // because no cluster has this name
}

// clustersOf returns what the command line and the variables say about clusters, with each
// cluster once. Most calls name none, and are not parsed for that.
func clustersOf(command string, args []string, p *stdio.Process) option.ClustersRequest {
	mentioned := slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--cl") || strings.HasPrefix(a, "--fe") || strings.HasPrefix(a, "--si") ||
			strings.HasPrefix(a, "-") && strings.Contains(a, "M")
	})
	if !mentioned && cmp.Or(p.Env("SLURM_CLUSTERS"), p.Env("SBATCH_CLUSTERS"), p.Env("SALLOC_CLUSTERS"),
		p.Env("SINFO_FEDERATION"), p.Env("SACCT_FEDERATION")) == "" {
		return option.ClustersRequest{}
	}
	r := option.ClustersIn(command, args, p.LookupEnv)
	var once []string
	for _, name := range r.Clusters {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	r.Clusters = once
	return r
}

// onClusters runs the command for other clusters than the present one. ok is false if the
// command is for the present one, or cannot be used for others.
func (c *command) onClusters(ctx context.Context, p *stdio.Process) (ok bool, err error) {
	name, args := c.name, c.args
	if !onEach[name] && !onOne[name] && !submits[name] {
		return false, nil
	}
	return c.onNamed(ctx, p, clustersOf(name, args, p))
}

// onNamed is onClusters for the clusters of a request.
func (c *command) onNamed(ctx context.Context, p *stdio.Process, r option.ClustersRequest) (ok bool, err error) {
	name, args := c.name, c.args
	if r.Federation && federated[name] && !r.Prints {
		return c.onFederation(ctx, p, r)
	}
	names := r.Clusters
	if slices.Contains(names, "all") && onEach[name] {
		names = jobs.ClusterNames(ctx, p)
	}
	if len(names) == 0 {
		return false, nil
	}
	if _, found := kube.Locate(p, names[0]); len(names) == 1 && !found && comparesItself[name] {
		return false, nil
	}
	if hasWrongOption(name, args, p) {
		return false, nil // the command says so, before it looks for the cluster
	}
	sites, err := known(name, p, locate(ctx, p, names))
	if r.Prints && len(sites) > 1 {
		sites = sites[:1]
	}
	switch {
	case err != nil:
		return true, c.afterNothing(p, err)
	case len(sites) == 0: // of sacct
		return false, nil
	case onEach[name] && len(sites) > 1 && r.Iterates:
		return true, slurmerr.New(slurmerr.Fatal, "Only one cluster can be used at a time with --iterate")
	case onOne[name] && len(sites) > 1:
		return true, slurmerr.Newf(slurmerr.Fatal, "Only one cluster can be used at a time with %s", name)
	case submits[name] && len(sites) > 1:
		s, err := c.earliest(ctx, len(r.Operands) == 0, p, sites)
		if err != nil {
			return true, err
		}
		return true, c.create(s.in.WithEnv(s.variables)).Run(ctx, args)
	case len(sites) == 1:
		if sites[0].err != nil {
			return true, sites[0].err
		}
		return true, c.create(p.WithEnv(sites[0].variables)).Run(ctx, args)
	}
	return true, c.onEach(ctx, p, sites)
}

// afterNothing returns the error of a command that has sent nothing. Slurm's srun --test-only prints
// errno then.
func (c *command) afterNothing(p *stdio.Process, err error) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	if !ok || c.name != "srun" {
		return err
	}
	if o, err := option.Parse(option.Srun, c.args, p.Environ()); err == nil && o.Client.TestOnly {
		e.After = "allocation failure: No error\n"
	}
	return e
}

// onFederation runs a command that lists something on each member of the federation. ok is false if
// the present cluster is in none.
func (c *command) onFederation(ctx context.Context, p *stdio.Process, r option.ClustersRequest) (ok bool, err error) {
	members, failures := jobs.FederationOf(jobs.Members(ctx, p))
	if len(members) == 0 {
		return false, nil
	}
	if r.Iterates && len(members) > 1 {
		return true, slurmerr.New(slurmerr.Fatal, "Only one cluster can be used at a time with --iterate")
	}
	var sites []site
	for _, m := range members {
		s := site{name: m.Name, variables: map[string]string{kube.EnvCluster: m.Name}}
		maps.Copy(s.variables, m.Variables)
		s.variables["SLURM_CLUSTERS"] = m.Name // lists have headings
		sites = append(sites, s)
	}
	for _, err := range failures {
		sites = append(sites, site{err: err})
	}
	return true, c.onEach(ctx, p, sites)
}

// hasWrongOption reports whether a command that creates a job cannot read its options.
func hasWrongOption(name string, args []string, p *stdio.Process) bool {
	c, ok := map[string]option.Command{"salloc": option.Salloc, "srun": option.Srun}[name]
	if !ok {
		return false
	}
	_, err := option.Parse(c, args, p.Environ())
	return err != nil
}

// known returns the sites without those whose names no cluster has, and reports these; it
// returns an error if none is left.
func known(name string, p *stdio.Process, sites []site) ([]site, error) {
	var out []site
	var names []string
	for _, s := range sites {
		names = append(names, s.name)
		if !s.unknown {
			out = append(out, s)
			continue
		}
		if name != "sacct" { // it has no jobs of such a cluster, as in Slurm
			slurmerr.Print(p.Err, name, s.err)
		}
	}
	if len(out) == 0 && name != "sacct" {
		list := printable.Escape(strings.Join(names, ","))
		return nil, slurmerr.Newf(slurmerr.Refused, "'%s' can't be reached now, or it is an invalid entry for "+
			"--cluster.  Use 'sacctmgr list clusters' to see available clusters.", list)
	}
	return out, nil
}

// onEach runs the command on one cluster after the other. It reports the clusters that
// cannot be used, and returns the first error.
func (c *command) onEach(ctx context.Context, p *stdio.Process, sites []site) (err error) {
	first := true
	for _, s := range sites {
		failure := s.err
		if failure == nil {
			more, q := c.args, p.WithEnv(s.variables)
			if !first && c.name == "sacct" {
				more = append([]string{"--noheader"}, c.args...)
			} else if !first {
				q.Out = &separated{p.Out, false}
			}
			first = false
			failure = c.create(q).Run(ctx, more)
		}
		if failure != nil {
			slurmerr.Print(p.Err, c.name, failure)
			if err == nil {
				err = &slurmerr.Error{Code: slurmerr.ExitCode(failure)}
			}
		}
	}
	return err
}

// separated is a Writer that writes an empty line in front of the heading of a cluster.
type separated struct {
	io.Writer
	begun bool
}

func (w *separated) Write(b []byte) (int, error) {
	if !w.begun && bytes.HasPrefix(b, []byte("CLUSTER:")) {
		if _, err := w.Writer.Write([]byte("\n")); err != nil {
			return 0, err
		}
	}
	w.begun = true
	return w.Writer.Write(b)
}

// locate finds the clusters of these names, and tries at the same time whether they answer.
func locate(ctx context.Context, p *stdio.Process, names []string) []site {
	present := sync.OnceValues(func() (string, error) { return jobs.PresentCluster(ctx, p) })
	sites := make([]site, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		s := &sites[i]
		s.name = name
		variables, found := kube.Locate(p, name)
		if s.variables = variables; found && len(names) > 1 {
			wg.Go(func() { s.err = jobs.Probe(ctx, p.WithEnv(variables), name) })
		} else if !found { // it may be the name of the present cluster
			s.variables = map[string]string{kube.EnvCluster: name}
			wg.Go(func() {
				own, err := present()
				if s.err = err; err == nil && own != name {
					s.unknown, s.err = true, slurmerr.Newf(slurmerr.Refused, "No cluster '%s' known by database.",
						printable.Escape(name))
				}
			})
		}
	}
	wg.Wait()
	return sites
}

// chosen is the cluster on which a job starts first.
type chosen struct {
	site
	in *stdio.Process // with the job's script to read again
	at time.Time
}

// plannedStart is the layout of the time in the answer to --test-only.
const plannedStart = "2006-01-02T15:04:05"

// earliest asks the planner of each cluster when the job would start there. Of clusters with
// the same answer the first one is taken. fromInput: sbatch reads the script from its input.
func (c *command) earliest(
	ctx context.Context, fromInput bool, p *stdio.Process, sites []site,
) (best *chosen, err error) {
	var script []byte
	if c.name == "sbatch" && fromInput && p.In != nil {
		if script, err = io.ReadAll(p.In); err != nil {
			return nil, err
		}
	}
	for _, s := range sites {
		failure := s.err
		if failure == nil {
			var at time.Time
			if at, failure = c.startOn(ctx, p, s, script); failure == nil {
				if best == nil || at.Before(best.at) {
					best = &chosen{s, nil, at}
				}
				continue
			}
		}
		if err == nil {
			err = failure
		}
	}
	if best == nil {
		return nil, err
	}
	for _, s := range sites {
		if s.err != nil {
			slurmerr.Print(p.Err, c.name, s.err)
		}
	}
	q := *p
	if script != nil {
		q.In = bytes.NewReader(script)
	}
	best.in = &q
	return best, nil
}

// startOn returns when the job would start on the cluster.
func (c *command) startOn(
	ctx context.Context, p *stdio.Process, s site, script []byte,
) (at time.Time, err error) {
	var answer bytes.Buffer
	q := p.WithEnv(s.variables)
	q.Out, q.Err = &answer, &answer
	if script != nil {
		q.In = bytes.NewReader(script)
	}
	if err := c.create(q).Run(ctx, append([]string{"--test-only"}, c.args...)); err != nil {
		return at, err
	}
	_, rest, _ := strings.Cut(answer.String(), " to start at ")
	if len(rest) < len(plannedStart) {
		return p.Now(), nil // it is accepted, and the planner does not say when it starts
	}
	return time.ParseInLocation(plannedStart, rest[:len(plannedStart)], p.Now().Location())
}
