package localcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// hostImage is the image of process nodes: the machine's own root file system.
const hostImage = "berth.hpc/host"

// configure writes the Cluster and Partition objects.
func configure(ctx context.Context, a *api, c Config) error {
	if c.Cluster != nil {
		o, err := object(berthAPI, "Cluster", &v1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName}, Spec: *c.Cluster,
		})
		if err != nil {
			return err
		}
		if err := a.apply(ctx, o); err != nil {
			return err
		}
	}
	if err := configurePools(ctx, a, c); err != nil {
		return err
	}
	var have v1alpha1.PartitionList
	if err := a.do(ctx, "GET", "/apis/"+berthAPI+"/partitions", "", nil, &have); err != nil {
		return err
	}
	partitions := c.Partitions
	if err := a.deleteOtherPartitions(ctx, have, partitions); err != nil {
		return err
	}
	if len(partitions) == 0 {
		if len(have.Items) > 0 {
			return a.updateHostPaths(ctx, have, c.BinDir)
		}
		partitions = []v1alpha1.Partition{{
			ObjectMeta: metav1.ObjectMeta{Name: "main"},
			Spec:       v1alpha1.PartitionSpec{Default: true, Nodes: "ALL"},
		}}
	}
	for _, p := range partitions {
		if err := setLocalDefaults(&p, c.BinDir); err != nil {
			return err
		}
		o, err := object(berthAPI, "Partition", &p)
		if err != nil {
			return err
		}
		if err := a.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// deleteOtherPartitions deletes the partitions that are not wanted, if any is wanted.
func (a *api) deleteOtherPartitions(
	ctx context.Context, have v1alpha1.PartitionList, wanted []v1alpha1.Partition,
) error {
	if len(wanted) == 0 {
		return nil
	}
	for _, p := range have.Items {
		if slices.ContainsFunc(wanted, func(w v1alpha1.Partition) bool { return w.Name == p.Name }) {
			continue
		}
		if err := a.do(ctx, "DELETE", "/apis/"+berthAPI+"/partitions/"+p.Name, "", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// updateHostPaths updates the directory of the commands in partitions of an earlier run.
func (a *api) updateHostPaths(ctx context.Context, have v1alpha1.PartitionList, bin string) error {
	patch := map[string]any{"spec": map[string]any{"agent": map[string]any{"hostPath": bin}}}
	for _, p := range have.Items {
		if old := p.Spec.Agent.HostPath; old == "" || old == bin {
			continue
		}
		err := a.do(ctx, "PATCH", "/apis/"+berthAPI+"/partitions/"+p.Name+"?fieldManager="+fieldManager,
			"application/merge-patch+json", patch, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// setLocalDefaults sets what a partition of process nodes needs: jobs see all files of
// this machine at the same paths.
func setLocalDefaults(p *v1alpha1.Partition, bin string) error {
	if len(p.Spec.SharedPaths) == 0 {
		p.Spec.SharedPaths = []string{"/"}
	}
	if p.Spec.Agent == (v1alpha1.AgentSource{}) {
		p.Spec.Agent.HostPath = bin
	}
	if len(p.Spec.Template.Raw) > 0 {
		return nil
	}
	template := map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "job", "image": hostImage}},
	}}
	data, err := json.Marshal(template)
	if err != nil {
		return fmt.Errorf("partition %s: %w", p.Name, err)
	}
	p.Spec.Template = runtime.RawExtension{Raw: data}
	return nil
}
