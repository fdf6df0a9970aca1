package realnode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
)

// enforcer enforces the site's NetworkPolicies, which its network, a bridge on every
// node, does not implement. It watches the API server, but reads pods' addresses from
// the files of the nodes' network, because a pod's status has them only when its
// containers run and connect.
type enforcer struct {
	nodes      []*node
	policies   networkinglisters.NetworkPolicyLister
	namespaces corelisters.NamespaceLister
	pods       corelisters.PodLister
	noted      map[string]note   // by the file's path
	applied    map[string]string // by the node's name
	failed     atomic.Pointer[error]
}

// note is the file of a node's network about a pod.
type note struct {
	namespace, name string
	uid             types.UID
	address         netip.Addr
}

// startEnforcer returns when the API server's objects are known; ctx ends it.
func (s *Site) startEnforcer(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	s.enforcer = &enforcer{
		nodes:      s.nodes,
		policies:   factory.Networking().V1().NetworkPolicies().Lister(),
		namespaces: factory.Core().V1().Namespaces().Lister(),
		pods:       factory.Core().V1().Pods().Lister(),
		noted:      map[string]note{}, applied: map[string]string{},
	}
	factory.Start(ctx.Done())
	if !allTrue(factory.WaitForCacheSync(ctx.Done())) {
		return errors.New("NetworkPolicies: the API server's objects do not come")
	}
	go s.enforcer.run(ctx)
	return nil
}

func allTrue[K comparable](m map[K]bool) bool {
	for _, ok := range m {
		if !ok {
			return false
		}
	}
	return true
}

// err returns why the present policies are not enforced; nil: they are.
func (e *enforcer) err() error {
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// run frequently compares the required rules with the installed ones: both are small.
func (e *enforcer) run(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := e.step(ctx)
		if err != nil && ctx.Err() == nil && fmt.Sprint(e.err()) != err.Error() {
			progress("network policies: %v", err)
		}
		e.failed.Store(&err)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// step brings every node's rules up to date.
func (e *enforcer) step(ctx context.Context) error {
	c, err := e.cluster()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range e.nodes {
		if n.ended() {
			continue // its network namespace is gone, too
		}
		rules, err := c.ruleset(n.spec.Name, n.spec.gateway())
		if err == nil && rules != e.applied[n.spec.Name] {
			err = n.apply(ctx, rules)
		}
		if err == nil {
			e.applied[n.spec.Name] = rules
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// cluster is the present state of the cluster.
func (e *enforcer) cluster() (*cluster, error) {
	policies, err := e.policies.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	namespaces, err := e.namespaces.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	c := &cluster{policies: policies, namespaces: map[string]labels.Set{}}
	for _, n := range namespaces {
		c.namespaces[n.Name] = n.Labels
	}
	for _, n := range e.notes() {
		pod, err := e.pods.Pods(n.namespace).Get(n.name)
		if err == nil && pod.UID == n.uid {
			c.endpoints = append(c.endpoints, endpoint{pod: pod, address: n.address})
		}
	}
	// The same rules are the same text.
	slices.SortFunc(c.policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.endpoints, func(a, b endpoint) int { return a.address.Compare(b.address) })
	return c, nil
}

// notes returns those of the pods that have a network now.
func (e *enforcer) notes() []note {
	var found []note
	known := map[string]note{}
	for _, n := range e.nodes {
		// only a bad pattern fails
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/var/lib/cni/results/*", n.cmd.Process.Pid))
		for _, file := range files {
			of, ok := e.noted[file]
			if !ok {
				of, ok = readNote(file)
			}
			if ok {
				known[file] = of
				found = append(found, of)
			}
		}
	}
	e.noted = known
	return found
}

// readNote parses libcni's file about a pod's network, in its own format.
func readNote(file string) (note, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return note{}, false // the pod has just gone
	}
	var kept struct {
		CNIArgs [][2]string `json:"cniArgs"`
		Result  struct {
			IPs []struct{ Address netip.Prefix }
		}
	}
	if err := json.Unmarshal(b, &kept); err != nil || len(kept.Result.IPs) == 0 {
		return note{}, false // not written to its end
	}
	args := map[string]string{}
	for _, a := range kept.CNIArgs {
		args[a[0]] = a[1]
	}
	return note{
		namespace: args["K8S_POD_NAMESPACE"], name: args["K8S_POD_NAME"], uid: types.UID(args["K8S_POD_UID"]),
		address: kept.Result.IPs[0].Address.Addr(),
	}, true
}

// apply installs the rules in the node's kernel.
func (n *node) apply(ctx context.Context, rules string) error {
	cmd := exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", n.cmd.Process.Pid), "nft", "-f",
		"-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("node %s: nft: %w: %s\n%s", n.spec.Name, err, bytes.TrimSpace(out), rules)
	}
	return nil
}
