package loginkube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// nodeObject is the part of a Node that has its names.
type nodeObject struct {
	metav1.ObjectMeta `json:"metadata"`
}

// names returns all names by which users may call the node: its own name, that up to the
// first dot, that of its annotation, and its own with dashes for dots.
func (n *nodeObject) names() []string {
	short, _, _ := strings.Cut(n.Name, ".")
	all := []string{n.Name, short, strings.ReplaceAll(n.Name, ".", "-")}
	if a := n.Annotations[wire.AnnotationNodeName]; a != "" {
		all = append(all, a)
	}
	return all
}

// node returns the node with one of these names; nil: there is none.
func (c *Cluster) node(name string) *nodeObject {
	if c.nodes == nil || c.nodes.fresh() != nil {
		return nil
	}
	return c.nodes.find(func(n *nodeObject) bool { return slices.Contains(n.names(), name) })
}

// IsNode reports whether a name is that of a node of the cluster.
func (c *Cluster) IsNode(name string) bool { return c.node(name) != nil }

// Place is a user's job on a node.
type Place struct {
	Job  int64
	Node string // the name in Slurm's commands
	// Address is the pod's address; invalid if it is unknown.
	Address netip.Addr
	home    string
}

// Place returns the user's running job on a node, the one that started last if there are
// several; nil, nil: there is none. It uses a token of the user, so that the API server
// decides what the user may see.
func (c *Cluster) Place(ctx context.Context, user string, uid int, home, node string) (*Place, error) {
	n := c.node(node)
	if n == nil {
		return nil, fmt.Errorf("node %s does not exist", node)
	}
	client, err := c.as(ctx, user, uid)
	if client == nil || err != nil {
		return nil, err
	}
	list, err := jobs.New(client).Jobs(ctx, jobs.Filter{
		Users: []string{
			user,
		},
		States: []string{"RUNNING"},
		Fields: []string{"id", "state", "start", "nodeList", "namespace", "object"},
	})
	if err != nil {
		return nil, err
	}
	best, name := youngest(list.Items, n.names())
	if best == nil {
		return nil, nil
	}
	return &Place{Job: best.ID, Node: name, Address: address(ctx, client, best, name), home: home}, nil
}

// youngest returns the job on a node that started last, of several in one second the one
// with the highest id, and its name of the node.
func youngest(list []status.Job, names []string) (best *status.Job, name string) {
	for i := range list {
		hosts, err := hostlist.Expand(list[i].NodeList)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(hosts, func(h string) bool { return slices.Contains(names, h) })
		if at >= 0 && (best == nil || younger(&list[i], best)) {
			best, name = &list[i], hosts[at]
		}
	}
	return best, name
}

func younger(a, b *status.Job) bool {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) > 0
}

// as returns a client with the user's rights; nil, nil: the cluster does not have the
// user.
func (c *Cluster) as(ctx context.Context, user string, uid int) (*kube.Client, error) {
	cred, err := c.Credential(ctx, user, uid)
	if err != nil || len(cred.Files) == 0 {
		return nil, err
	}
	own := c.client.Config()
	return kube.New(c.process, &kube.Config{
		Server: own.Server, CA: own.CA, ServerName: own.ServerName, Insecure: own.Insecure, Proxy: own.Proxy,
		Token: cred.Files[fileToken], Namespace: cred.namespace, Source: "token of " + user,
	})
}

// address returns the address of a job's pod on a node.
func address(ctx context.Context, client *kube.Client, j *status.Job, node string) netip.Addr {
	var o v1alpha1.BatchJob
	path := "/apis/berth.hpc/v1alpha1/namespaces/" + j.Namespace + "/batchjobs/" + j.Object
	if client.Get(ctx, path, nil, &o) != nil || o.Status.Allocation == nil {
		return netip.Addr{} // without it, forwarding fails but a shell works
	}
	for _, n := range o.Status.Allocation.Nodes {
		if n.Name == node {
			if a, err := netip.ParseAddrPort(n.Address); err == nil {
				return a.Addr()
			}
		}
	}
	return netip.Addr{}
}

// Command returns the command that runs a program in the job on that node, as an
// overlapping step. %E stands for the names of the variables to export. For a terminal,
// Terminal is added.
func (p *Place) Command() []string {
	return []string{
		// With -QQ, srun prints no message for a program's exit code.
		"srun",
		"-QQ",
		"--overlap",
		"--unbuffered",
		"--jobid=" + strconv.FormatInt(p.Job, 10),
		"--nodelist=" + p.Node,
		"-N1",
		"-n1",
		"--export=%E",
		"--chdir=" + p.home,
	}
}

// IntoJob is the command line that connects to a port in the job (package injob of the
// login node).
const IntoJob = `exec "$BERTH_BIN/agent" connect`

// Terminal is the further argument of Command for a terminal.
const Terminal = "--pty"
