package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// devices are the rows of the Cluster's table of devices.
type devices struct {
	Spec struct {
		Devices []struct {
			Name     string `json:"name"`
			Type     string `json:"type"`
			Resource string `json:"resource"`
		} `json:"devices"`
	} `json:"spec"`
}

// maxNodesNamed is how many nodes a line names.
const maxNodesNamed = 5

// devices reports nodes with devices that cannot be used, and rows of the Cluster's table that no
// node's device plugin or driver serves.
func (d *doctor) devices(ctx context.Context) {
	var list status.NodeList
	if err := d.client.Get(ctx, wire.QueueRoot+"/nodes", nil, &list); err != nil {
		return // nodes has reported it
	}
	var trouble []string
	have := map[string]bool{}
	for i := range list.Items {
		n := &list.Items[i]
		if n.DeviceTrouble != "" {
			trouble = append(trouble, n.Name+": "+n.DeviceTrouble)
		}
		for term := range strings.SplitSeq(n.GRES, ",") {
			if end := strings.LastIndexByte(term, ':'); end > 0 {
				have[term[:end]] = true
			}
		}
	}
	if len(trouble) > 0 {
		d.warn("scontrol show node; the device plugin or driver on the node (docs/admin/devices.md)",
			"devices of %d nodes cannot be used: %s", len(trouble),
			strings.Join(trouble[:min(len(trouble), maxNodesNamed)], "; "))
	}
	var c devices
	// Users may not read the Cluster, and there may be none.
	err := d.client.Get(ctx, "/apis/berth.hpc/v1alpha1/clusters/berth", nil, &c)
	if kind := kube.KindOf(err); err != nil && kind != kube.NotFound && kind != kube.Forbidden {
		d.bad("", "cannot read the Cluster object: %v", err)
	}
	var missing []string
	for _, row := range c.Spec.Devices {
		name := strings.TrimSuffix(row.Name+":"+row.Type, ":")
		if text := name + " (" + row.Resource + ")"; !have[name] && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if len(missing) > 0 {
		d.warn("kubectl get resourceslices,deviceclasses; kubectl describe node (docs/admin/devices.md)",
			"no node offers %s: no device plugin or driver reports such devices", strings.Join(missing, ", "))
	}
	if kinds := len(have); kinds > 0 && len(trouble)+len(missing) == 0 {
		d.ok("the nodes offer %d kinds of generic resources", kinds)
	}
}
