package app

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/sched/imageaccounts"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/translate/kube"
)

// objects returns the starter's builder: translate/kube with the present objects of the
// cluster. Call it before the cluster's stores are filled.
func objects(cfg Config, e *endpoint, c *control.Cluster) starter.Builder {
	images := imageaccounts.New()
	c.Pods.Subscribe(images.Apply)
	return func(b *v1alpha1.BatchJob) (*podgroup.PodGroup, *jobset.JobSet, error) {
		user, ok := c.Users.Get(b.Spec.User)
		if !ok {
			return nil, nil, fmt.Errorf("there is no user %s any more", b.Spec.User)
		}
		in := kube.Input{
			Job: b, User: user, API: cfg.PodURL, APICA: e.ca,
			Resource: func(a *v1alpha1.NodeAllocation, g *v1alpha1.GRESAllocation) corev1.ResourceName {
				return resourceFor(c, a, g)
			},
			Agent: v1alpha1.AgentSource{Image: cfg.AgentImage},
		}
		if imageVolumes(c, b.Status.Allocation) { // since 1.35 they name the node in /etc/hosts, too
			in.Accounts = images.Of
		} else {
			in.Agent.InitContainer = cfg.AgentImage != ""
		}
		for _, p := range snapshot.EffectivePartitions(c.Partitions.List()) {
			if p.Name == b.Status.Partition {
				in.Partition = p
			}
		}
		if in.Partition == nil {
			return nil, nil, fmt.Errorf("there is no partition %s any more", b.Status.Partition)
		}
		if s, ok := c.Settings.Get(v1alpha1.ClusterName); ok {
			in.Cluster = s
		}
		return kube.Objects(in)
	}
}

// imageVolumes reports whether every node of an allocation can mount an image as a
// volume.
func imageVolumes(c *control.Cluster, a *v1alpha1.Allocation) bool {
	for i := range a.Nodes {
		if n, ok := c.Nodes.Get(a.Nodes[i].ObjectName()); !ok || !kube.ImageVolumes(&n.Status.NodeInfo) {
			return false
		}
	}
	return true
}

// resourceFor returns the resource for g on the node: Berth's own if the node offers
// it, otherwise that of a device plugin.
func resourceFor(c *control.Cluster, a *v1alpha1.NodeAllocation, g *v1alpha1.GRESAllocation) corev1.ResourceName {
	own := kube.Resource(a, g)
	n, ok := c.Nodes.Get(a.ObjectName())
	if !ok {
		return own
	}
	if _, offered := n.Status.Allocatable[own]; offered {
		return own
	}
	spec := &v1alpha1.ClusterSpec{}
	if s, ok := c.Settings.Get(v1alpha1.ClusterName); ok {
		spec = &s.Spec
	}
	if r, ok := gres.Resource(spec, n, g.Name, g.Type); ok {
		return r
	}
	return own
}
