// Package doctor is berth doctor: it checks a cluster as its caller sees it, in the order
// of the dependencies, and prints problems and their solutions.
package doctor

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Client is the part of the API client that doctor uses.
type Client interface {
	Get(ctx context.Context, path string, query url.Values, out any) error
	Post(ctx context.Context, path string, query url.Values, in, out any) error
	Config() *kube.Config
}

// Commands returns berth's subcommands of this package.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{New(p, func() (Client, error) { return kube.Connect(p, "") })}
}

// New returns the command. connect is called once, when it runs.
func New(p *stdio.Process, connect func() (Client, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the cluster and suggest how to fix problems",
		Long: `Check the cluster that the commands use, from this machine and with your
credentials: whether it responds and is recent enough, whether the resource types
of Berth, JobSet and PodGroups are installed, whether the queue responds and jobs
are admitted, your permissions, whether the clocks agree, how many nodes can run
jobs, whether jobs can use this directory, whether users share uids, how the
sources of users stand, and whether the login node sees its clients' addresses.
Nothing is changed.

Each line begins with ok, warning, or wrong; the exit code is 1 if anything is
wrong.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := connect()
			if err != nil {
				return err
			}
			d := &doctor{p: p, client: client}
			d.check(c.Context())
			if d.wrong > 0 {
				return &slurmerr.Error{Code: 1, Message: fmt.Sprintf("wrong: %d", d.wrong)}
			}
			return nil
		},
	}
}

// doctor is one run of the command.
type doctor struct {
	p      *stdio.Process
	client Client
	wrong  int
}

func (d *doctor) ok(format string, args ...any)    { d.print("ok", "", format, args...) }
func (d *doctor) warn(do, format string, a ...any) { d.print("warning", do, format, a...) }

func (d *doctor) bad(do, format string, args ...any) {
	d.wrong++
	d.print("wrong", do, format, args...)
}

// print prints a result and, on a second line, what to do about it.
func (d *doctor) print(mark, do, format string, args ...any) {
	fmt.Fprintf(d.p.Out, "%-8s %s\n", mark, fmt.Sprintf(format, args...))
	if do != "" {
		fmt.Fprintf(d.p.Out, "%8s -> %s\n", "", do)
	}
}

// check runs all checks, without those that can only fail after an earlier failure.
func (d *doctor) check(ctx context.Context) {
	if !d.server(ctx) || !d.types(ctx) {
		return
	}
	d.permissions(ctx)
	if d.queue(ctx) {
		d.nodes(ctx)
		d.devices(ctx)
		d.topology(ctx)
		d.pools(ctx)
	}
	d.admission(ctx)
	d.users(ctx)
	d.directory(ctx)
	d.login(ctx)
}

// oldest is the minor version of the oldest supported Kubernetes 1.x
// (spec.hostnameOverride).
const oldest = 35

func (d *doctor) server(ctx context.Context) bool {
	cfg := d.client.Config()
	var v struct{ Major, Minor, GitVersion string }
	if err := d.client.Get(ctx, "/version", nil, &v); err != nil {
		what := "sent an unexpected response"
		switch kube.KindOf(err) {
		case kube.Unreachable:
			what = "does not respond"
		case kube.Expired, kube.Forbidden:
			what = "rejected your credentials"
		}
		d.bad(
			"see berth kubeconfig for the file that configures the cluster",
			"the API server at %s %s: %v",
			cfg.Server,
			what,
			err,
		)
		return false
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil || v.Major != "1" || minor < oldest {
		d.bad("upgrade the cluster", "Kubernetes %s at %s; Berth needs 1.%d", v.GitVersion, cfg.Server, oldest)
		return false
	}
	d.ok("Kubernetes %s at %s (%s)", v.GitVersion, cfg.Server, cfg.Source)
	return true
}

// types checks that the cluster has the resource types.
func (d *doctor) types(ctx context.Context) bool {
	all := true
	for _, t := range []struct{ group, resource, do string }{
		{"berth.hpc/v1alpha1", "batchjobs", "install Berth: docs/admin/install.md"},
		{
			"jobset.x-k8s.io/v1alpha2", "jobsets",
			"upgrade Berth's Helm release with --set jobset.embedded=auto, or install JobSet",
		},
		{
			"scheduling.x-k8s.io/v1alpha1", "podgroups",
			"upgrade Berth's Helm release; the chart installs a missing CRD",
		},
	} {
		var list struct{ Resources []struct{ Name string } }
		err := d.client.Get(ctx, "/apis/"+t.group, nil, &list)
		found := false
		for _, r := range list.Resources {
			found = found || r.Name == t.resource
		}
		switch {
		case found:
		case err != nil && kube.KindOf(err) != kube.NotFound:
			d.bad("", "cannot list the resources of %s: %v", t.group, err)
			all = false
		default:
			d.bad(t.do, "the cluster has no %s (%s)", t.resource, t.group)
			all = false
		}
	}
	if all {
		d.ok("the resource types of Berth, JobSet and PodGroups are installed")
	}
	return all
}

// permissions checks the caller's permissions in the API server.
func (d *doctor) permissions(ctx context.Context) {
	space := d.client.Config().Namespace
	missing := []string{}
	for _, r := range []struct{ verb, group, resource, space string }{
		{"create", "berth.hpc", "batchjobs", space}, {"delete", "berth.hpc", "batchjobs", space},
		{"list", wire.QueueGroup, "jobs", ""}, {"create", wire.QueueGroup, "operations", ""},
	} {
		review := map[string]any{
			"apiVersion": "authorization.k8s.io/v1",
			"kind":       "SelfSubjectAccessReview",
			"spec": map[string]any{
				"resourceAttributes": map[string]any{
					"verb":      r.verb,
					"group":     r.group,
					"resource":  r.resource,
					"namespace": r.space,
				},
			},
		}
		var answer struct{ Status struct{ Allowed bool } }
		if err := d.client.Post(
			ctx,
			"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			nil,
			review,
			&answer,
		); err != nil {
			d.bad("", "cannot check your permissions: %v", err)
			return
		}
		if !answer.Status.Allowed {
			missing = append(missing, r.verb+" "+r.resource)
		}
	}
	if len(missing) > 0 {
		d.bad("ask an administrator to add you as a user: sacctmgr add user, or the chart's values (docs/admin/identity.md)",
			"in the namespace %s you may not %s", space, strings.Join(missing, ", "))
		return
	}
	d.ok("you may submit jobs in the namespace %s and query the queue", space)
}

// queue checks the aggregated API.
func (d *doctor) queue(ctx context.Context) bool {
	var info map[string]any
	err := d.client.Get(ctx, wire.QueueRoot+"/clusterinfo", nil, &info)
	switch {
	case err == nil:
		d.ok("the queue responds")
		return true
	case kube.KindOf(err) == kube.Forbidden:
		return false // reported by permissions
	case kube.KindOf(err) == kube.NotFound:
		d.bad(
			"upgrade Berth's Helm release with its present values (a local cluster: berth down, berth up)",
			"the queue is not registered: the cluster has no APIService %s.%s",
			wire.QueueVersion,
			wire.QueueGroup,
		)
		return false
	}
	d.bad(
		"kubectl -n "+wire.SystemNamespace+" get pods; "+
			"kubectl -n "+wire.SystemNamespace+" logs deploy/berth-scheduler; kubectl get apiservice "+
			wire.QueueVersion+"."+wire.QueueGroup+" -o yaml",
		"the queue does not respond: %v",
		err,
	)
	return false
}

func (d *doctor) nodes(ctx context.Context) {
	var list status.NodeList
	if err := d.client.Get(ctx, wire.QueueRoot+"/nodes", nil, &list); err != nil {
		d.bad("", "cannot list nodes: %v", err)
		return
	}
	var usable int
	var why []string
	for i := range list.Items {
		n := &list.Items[i]
		if n.State == "DOWN" || slices.Contains(n.Flags, "DRAIN") {
			why = append(why, strings.TrimSpace(n.Name+" "+n.Reason))
			continue
		}
		usable++
	}
	switch {
	case usable == 0:
		d.bad("see sinfo -R and kubectl get nodes", "none of %d nodes can run jobs", len(list.Items))
	case len(why) > 0:
		d.warn(
			"sinfo -R",
			"%d of %d nodes are down or drained: %s",
			len(why),
			len(list.Items),
			strings.Join(why[:min(len(why), 5)], "; "),
		)
	default:
		d.ok("%d nodes can run jobs", usable)
	}
}

// topology reports what is wrong in the description of the network.
func (d *doctor) topology(ctx context.Context) {
	var t status.Topology
	if err := d.client.Get(ctx, wire.QueueRoot+"/topology", nil, &t); err != nil {
		if kube.KindOf(err) != kube.NotFound { // a scheduler of an earlier release
			d.bad("", "cannot list switches: %v", err)
		}
		return
	}
	for i, text := range t.Problems {
		if i == maxProblems {
			d.warn("", "%d more problems of the network's description", len(t.Problems)-i)
			break
		}
		d.warn(
			"correct topology in the Cluster object, or the labels of the nodes (docs/admin/partitions.md)",
			"the network: %s", text,
		)
	}
	if len(t.Problems) == 0 && len(t.Items) > 0 {
		d.ok("the network has %d switches", len(t.Items))
	}
}

// maxProblems is how many problems of the network are listed.
const maxProblems = 5

// maxSkew is the maximum difference of the clocks, on which job tokens and time limits
// depend.
const maxSkew = 5 * time.Second

// admission submits a job as a dry run.
func (d *doctor) admission(ctx context.Context) {
	dir, err := d.p.Dir()
	if err != nil {
		d.bad("", "cannot determine the working directory: %v", err)
		return
	}
	job := map[string]any{
		"apiVersion": "berth.hpc/v1alpha1",
		"kind":       "BatchJob",
		"metadata":   map[string]any{"name": "j-doctor"},
		"spec":       map[string]any{"job": map[string]any{"name": "doctor", "batch": map[string]any{"workDir": dir}}},
	}
	var made struct {
		Spec struct {
			JobID      int64
			SubmitTime time.Time
		}
	}
	before := d.p.Now()
	path := "/apis/berth.hpc/v1alpha1/namespaces/" + d.client.Config().Namespace + "/batchjobs"
	err = d.client.Post(ctx, path, url.Values{"dryRun": {"All"}}, job, &made)
	switch kube.KindOf(err) {
	case kube.Forbidden:
		return // reported by permissions
	case kube.NotFound:
		d.bad(
			"ask an administrator to add you as a user (sacctmgr add user, or users in the chart's values)",
			"you are not a user of this cluster: there is no namespace %s",
			d.client.Config().Namespace,
		)
		return
	case kube.Denied:
		d.bad(
			"ask an administrator which directories jobs may use (sharedPaths of the Partition) and who may submit jobs",
			"a job in %s is rejected: %v",
			dir,
			err,
		)
		return
	}
	if err != nil {
		d.bad(
			"kubectl get mutatingwebhookconfigurations berth -o yaml; kubectl -n "+wire.SystemNamespace+" get pods",
			"admission of jobs fails: %v",
			err,
		)
		return
	}
	d.ok("a job in %s is admitted", dir)
	d.clock(before, made.Spec.SubmitTime, d.p.Now())
}

// clock compares the scheduler's clock with this machine's, before and after its response.
func (d *doctor) clock(before, scheduler, after time.Time) {
	switch {
	case scheduler.IsZero():
	case scheduler.Before(before.Add(-maxSkew)), scheduler.After(after.Add(maxSkew)):
		d.bad(
			"run an NTP client on this machine and on every node",
			"the scheduler's clock is at %s, this machine's at %s",
			scheduler.UTC().Format(time.DateTime),
			after.UTC().Format(time.DateTime),
		)
	default:
		d.ok("the clocks agree; these commands are version %s", build.Version)
	}
}
