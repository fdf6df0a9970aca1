package doctor

import (
	"context"

	"github.com/berth-hpc/berth/internal/kube"
)

// poolList has what doctor reads of the NodePool objects.
type poolList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Problem string `json:"problem"`
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
