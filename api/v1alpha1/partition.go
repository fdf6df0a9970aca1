package v1alpha1

// DefaultPartition is the name of the partition that exists when the cluster has
// no Partition object.
const DefaultPartition = "main"

// Inherit returns the partition with what it leaves open about its pods: one
// that scontrol or berth import made names nodes and limits and no image, agent
// or shared folders, and has those of the default partition. It returns p itself
// where p has a template, or the default partition has none; what it returns
// shares parts with p and all, and is not to be changed.
func (p *Partition) Inherit(all []*Partition) *Partition {
	if len(p.Spec.Template.Raw) > 0 {
		return p
	}
	from := model(all)
	if from == nil {
		return p
	}
	n := *p
	n.Spec.Template = from.Spec.Template
	if n.Spec.Agent == (AgentSource{}) {
		n.Spec.Agent = from.Spec.Agent
	}
	if len(n.Spec.SharedPaths) == 0 {
		n.Spec.SharedPaths = from.Spec.SharedPaths
	}
	return &n
}

// model is the partition that others inherit from; nil: there is none.
func model(all []*Partition) *Partition {
	for _, p := range all {
		if p.Spec.Default && len(p.Spec.Template.Raw) > 0 {
			return p
		}
	}
	return nil
}
