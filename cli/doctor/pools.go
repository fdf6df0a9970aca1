package doctor

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// poolList has what doctor reads of the NodePool objects.
type poolList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Problem string `json:"problem"`
			Nodes   []struct {
				Name     string `json:"name"`
				State    string `json:"state"`
				Failures int    `json:"failures"`
				Reason   string `json:"reason"`
			} `json:"nodes"`
		} `json:"status"`
	} `json:"items"`
}

// pools reports what is wrong with the pools of nodes that do not always run. Users who may
// not read them see the nodes themselves.
func (d *doctor) pools(ctx context.Context) {
	var list poolList
	if err := d.client.Get(ctx, "/apis/berth.hpc/v1alpha1/nodepools", nil, &list); err != nil {
		if kind := kube.KindOf(err); kind != kube.NotFound && kind != kube.Forbidden {
			d.bad("", "cannot list node pools: %v", err)
		}
		return
	}
	sound := true
	for i := range list.Items {
		d.failedNodes(&list, i)
		if p := &list.Items[i]; p.Status.Problem != "" {
			sound = false
			d.warn("kubectl edit nodepool "+p.Metadata.Name+" (docs/admin/node-pools.md)", "node pool %s: %s",
				p.Metadata.Name, p.Status.Problem)
		}
	}
	if sound && len(list.Items) > 0 {
		d.ok("the descriptions of %d node pools are valid", len(list.Items))
	}
}

// failedNodes reports the nodes of a pool that did not come, or came with less than promised, by
// reason.
func (d *doctor) failedNodes(list *poolList, pool int) {
	p := &list.Items[pool]
	failed := map[string][]string{}
	for i := range p.Status.Nodes {
		n := &p.Status.Nodes[i]
		switch {
		case n.State == "Failed" || n.Failures > 0:
			failed[cmp.Or(n.Reason, "did not come")] = append(failed[cmp.Or(n.Reason, "did not come")], n.Name)
		case n.State == "PoweringDown" && n.Reason != "":
			failed[n.Reason] = append(failed[n.Reason], n.Name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(failed)) {
		nodes := hostlist.Fold(failed[reason])
		d.warn("scontrol update nodename="+nodes+" state=resume, when the cause is removed",
			"node pool %s: %s: %s", p.Metadata.Name, nodes, reason)
	}
}
