package api

import (
	"context"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

const (
	errPartition     Refused = "Invalid partition name specified"
	errPartitionBusy Refused = "Partition is in use"
)

// partitionAction is scontrol create, update and delete of partitions.
func (o *Operations) partitionAction(c *directory.Caller, verb string, set map[string]string) (entityActor, error) {
	if !c.Admin {
		return nil, errInvalidUser
	}
	switch verb {
	case status.OpUpdate:
		return func(ctx context.Context, name string) (string, error) { return name, o.updatePartition(ctx, name, set) }, nil
	case status.OpCreate:
		return func(ctx context.Context, name string) (string, error) { return name, o.createPartition(ctx, name, set) }, nil
	case status.OpDelete:
		return func(ctx context.Context, name string) (string, error) { return name, o.deletePartition(ctx, name) }, nil
	}
	return nil, errNotSupported
}

func (o *Operations) updatePartition(ctx context.Context, name string, set map[string]string) error {
	p, ok := o.Cluster.Partitions.Get(name)
	if !ok {
		if o.Directory.Partition(name) == nil {
			return errPartition
		}
		return o.createPartition(ctx, name, set) // the one that is assumed
	}
	if len(set) == 0 {
		return errNoChanges
	}
	n := p.DeepCopy()
	if err := partitionSettings(&n.Spec, set); err != nil {
		return err
	}
	if err := o.Cluster.Client.Update(ctx, n); err != nil {
		if apierrors.IsConflict(err) {
			return errNotNow
		}
		return err
	}
	o.Cluster.Partitions.Apply(n)
	return o.onlyDefault(ctx, n)
}

func (o *Operations) createPartition(ctx context.Context, name string, set map[string]string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errPartition
	}
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := partitionSettings(&p.Spec, set); err != nil {
		return err
	}
	if err := o.Cluster.Client.Create(ctx, p); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return errPartition
		}
		return err
	}
	o.Cluster.Partitions.Apply(p)
	return o.onlyDefault(ctx, p)
}

// onlyDefault takes the mark from the partition that was the default before p.
func (o *Operations) onlyDefault(ctx context.Context, p *v1alpha1.Partition) error {
	if !p.Spec.Default {
		return nil
	}
	for _, other := range o.Cluster.Partitions.List() {
		if other.Name == p.Name || !other.Spec.Default {
			continue
		}
		n := other.DeepCopy()
		if err := o.merge(ctx, n, map[string]any{"spec": map[string]any{"default": nil}}, false); err != nil {
			return err
		}
		o.Cluster.Partitions.Apply(n)
	}
	return nil
}

func (o *Operations) deletePartition(ctx context.Context, name string) error {
	p, ok := o.Cluster.Partitions.Get(name)
	if !ok {
		return errPartition
	}
	if len(o.Table.Select(table.Query{Partitions: []string{name}})) > 0 {
		return errPartitionBusy
	}
	return o.Cluster.Client.Delete(ctx, p)
}

// partitionSettings makes all settings or none that fails.
func partitionSettings(p *v1alpha1.PartitionSpec, set map[string]string) error {
	for key, v := range set {
		f, ok := partitionKeys[key]
		if !ok {
			return unknownSetting(key, v)
		}
		if !f(p, v) {
			return Refused("Invalid input: " + key + "=" + v)
		}
	}
	return nil
}

// partitionSetter takes a value over; false: it is none.
type partitionSetter func(p *v1alpha1.PartitionSpec, v string) bool

// partitionKeys are scontrol's parameters of a partition, in lower case.
var partitionKeys = map[string]partitionSetter{
	"state": func(p *v1alpha1.PartitionSpec, v string) bool {
		p.State = strings.ToUpper(v)
		return p.State == "UP" || p.State == "DOWN" || p.State == "DRAIN" || p.State == "INACTIVE"
	},
	"nodes": func(p *v1alpha1.PartitionSpec, v string) bool {
		_, err := hostlist.Expand(v)
		p.Nodes = v
		return err == nil
	},
	"default":       flagOf(func(p *v1alpha1.PartitionSpec) *bool { return &p.Default }),
	"hidden":        flagOf(func(p *v1alpha1.PartitionSpec) *bool { return &p.Hidden }),
	"rootonly":      flagOf(func(p *v1alpha1.PartitionSpec) *bool { return &p.RootOnly }),
	"reqresv":       flagOf(func(p *v1alpha1.PartitionSpec) *bool { return &p.ReqResv }),
	"exclusiveuser": flagOf(func(p *v1alpha1.PartitionSpec) *bool { return &p.ExclusiveUser }),

	"maxtime":           minutesOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxTime }),
	"defaulttime":       minutesOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.DefaultTime }),
	"maxnodes":          countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxNodes }),
	"minnodes":          countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.MinNodes }),
	"maxcpuspernode":    countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxCPUs }),
	"priorityjobfactor": countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.PriorityJobFactor }),
	"prioritytier":      countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.PriorityTier }),
	"gracetime":         countOf(func(p *v1alpha1.PartitionSpec) *int32 { return &p.GraceTime }),
	"overtimelimit": func(p *v1alpha1.PartitionSpec, v string) bool {
		n, err := value.CountOrZero(v)
		p.OverTimeLimit = &n
		return err == nil
	},

	"defmempercpu":  memoryOf(func(p *v1alpha1.PartitionSpec) **int64 { return &p.DefMemPerCPU }),
	"defmempernode": memoryOf(func(p *v1alpha1.PartitionSpec) **int64 { return &p.DefMemPerNode }),
	"maxmempercpu":  memoryOf(func(p *v1alpha1.PartitionSpec) **int64 { return &p.MaxMemPerCPU }),
	"maxmempernode": memoryOf(func(p *v1alpha1.PartitionSpec) **int64 { return &p.MaxMemPerNode }),

	"allowaccounts": listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowAccounts }),
	"denyaccounts":  listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.DenyAccounts }),
	"allowgroups":   listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowGroups }),
	"allowqos":      listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowQOS }),
	"denyqos":       listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.DenyQOS }),

	"qos":         func(p *v1alpha1.PartitionSpec, v string) bool { p.QOS = v; return true },
	"alternate":   func(p *v1alpha1.PartitionSpec, v string) bool { p.Alternate = v; return true },
	"preemptmode": func(p *v1alpha1.PartitionSpec, v string) bool { p.PreemptMode = strings.ToUpper(v); return true },
	"oversubscribe": func(p *v1alpha1.PartitionSpec, v string) bool {
		p.OverSubscribe = strings.ToUpper(v)
		mode, _, _ := strings.Cut(p.OverSubscribe, ":")
		return mode == "NO" || mode == "YES" || mode == "FORCE" || mode == "EXCLUSIVE"
	},
	"tresbillingweights": func(p *v1alpha1.PartitionSpec, v string) bool {
		_, err := limits.ParseBilling(v, false)
		p.TRESBillingWeights = v
		return err == nil
	},
}

func flagOf(field func(*v1alpha1.PartitionSpec) *bool) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) bool {
		*field(p) = strings.EqualFold(v, "yes")
		return strings.EqualFold(v, "yes") || strings.EqualFold(v, "no")
	}
}

func minutesOf(field func(*v1alpha1.PartitionSpec) *int32) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) bool {
		if strings.EqualFold(v, "none") {
			*field(p) = 0
			return true
		}
		m, err := value.Minutes(v)
		if m == 0 {
			m = job.Unlimited
		}
		*field(p) = m
		return err == nil
	}
}

func countOf(field func(*v1alpha1.PartitionSpec) *int32) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) bool {
		if *field(p) = 0; strings.EqualFold(v, "unlimited") || strings.EqualFold(v, "infinite") {
			return true
		}
		n, err := strconv.ParseInt(v, 10, 32)
		*field(p) = int32(n)
		return err == nil && n >= 0
	}
}

func memoryOf(field func(*v1alpha1.PartitionSpec) **int64) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) bool {
		if *field(p) = nil; strings.EqualFold(v, "unlimited") {
			return true
		}
		n, err := value.Megabytes(v)
		*field(p) = &n
		return err == nil
	}
}

func listOf(field func(*v1alpha1.PartitionSpec) *[]string) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) bool {
		if *field(p) = nil; v != "" && !strings.EqualFold(v, "all") {
			*field(p) = list(map[string][]string{"": {v}}, "")
		}
		return true
	}
}
