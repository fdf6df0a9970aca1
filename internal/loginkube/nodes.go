package loginkube

import (
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

// nodeObject is as much of a Node as says what it is called.
type nodeObject struct {
	metav1.ObjectMeta `json:"metadata"`
}

// names are all that users may call the node: its own name, that up to the
// first dot, the one its annotation gives, and all labels joined.
func (n *nodeObject) names() []string {
	short, _, _ := strings.Cut(n.Name, ".")
	all := []string{n.Name, short, strings.ReplaceAll(n.Name, ".", "-")}
	if a := n.Annotations[wire.AnnotationNodeName]; a != "" {
		all = append(all, a)
	}
	return all
}

// node finds a node by any of its names; nil: there is none.
func (c *Cluster) node(name string) *nodeObject {
	if c.nodes == nil || c.nodes.fresh() != nil {
		return nil
	}
	return c.nodes.find(func(n *nodeObject) bool { return slices.Contains(n.names(), name) })
}

// IsNode tells whether a name is that of a node of the cluster.
func (c *Cluster) IsNode(name string) bool { return c.node(name) != nil }

// Place is where a user's job runs on a node.
type Place struct {
	Job  int64
	Node string // as Slurm's users call it
	// Address is the pod's; invalid where it is not known.
	Address netip.Addr
	home    string
}

// Place finds the user's running job on a node, the youngest if there are
// several; nil, nil: there is none. It asks with a token of the user's, so that
// the API server decides what the user may know.
func (c *Cluster) Place(ctx context.Context, user string, uid int, home, node string) (*Place, error) {
	n := c.node(node)
	if n == nil {
		return nil, fmt.Errorf("no node %s", node)
	}
	client, err := c.as(ctx, user, uid)
	if client == nil || err != nil {
		return nil, err
	}
	list, err := jobs.New(client).Jobs(ctx, jobs.Filter{
		Users: []string{user}, States: []string{"RUNNING"}, Fields: []string{"id", "state", "start", "nodeList", "namespace", "object"},
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

// youngest is the job that started last of those on a node, and what it calls
// the node.
func youngest(list []status.Job, names []string) (best *status.Job, name string) {
	for i := range list {
		hosts, err := hostlist.Expand(list[i].NodeList)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(hosts, func(h string) bool { return slices.Contains(names, h) })
		if at >= 0 && (best == nil || list[i].Start > best.Start) {
			best, name = &list[i], hosts[at]
		}
	}
	return best, name
}

// as is a client with the user's rights; nil, nil: the cluster does not know
// the user.
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

// address is where a job's pod on a node is reached.
func address(ctx context.Context, client *kube.Client, j *status.Job, node string) netip.Addr {
	var o v1alpha1.BatchJob
	path := "/apis/berth.hpc/v1alpha1/namespaces/" + j.Namespace + "/batchjobs/" + j.Object
	if client.Get(ctx, path, nil, &o) != nil || o.Status.Allocation == nil {
		return netip.Addr{} // no forwarding then; a shell works all the same
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

// Command runs a program in the job on that node: a step beside the others
// that waits for nothing. %E stands for the names of the variables that it is
// to have. With a terminal, Terminal is added.
func (p *Place) Command() []string {
	return []string{
		// Quiet enough that a program's exit code is no message of srun's.
		"srun", "-QQ", "--overlap", "--unbuffered", "--jobid=" + strconv.FormatInt(p.Job, 10), "--nodelist=" + p.Node, "-N1", "-n1",
		"--export=%E", "--chdir=" + p.home,
	}
}

// IntoJob is what Command runs to connect to a port in the job (package injob
// of the login node).
const IntoJob = `exec "$BERTH_BIN/agent" connect`

// Terminal are the further arguments of Command for a terminal.
const Terminal = "--pty"
