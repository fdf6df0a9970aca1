package operations

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	reasonTimeFormat = "2006-01-02T15:04:05"
	maxReason        = 512       // bytes of a node's reason
	maxWeight        = 1<<31 - 1 // of a node, as in slurm.conf

	stateDown = "DOWN"
	flagDrain = "DRAIN"

	flagRebootIssued = "REBOOT_ISSUED"

	// Values of wire.AnnotationState.
	annotationDown  = "down"
	annotationDrain = "drain"
)

// nodePatch is a merge patch of a Node object that is being built.
type nodePatch struct {
	row         *status.Node // the node as it is
	features    []string     // those that it will have
	caller      *directory.Caller
	reason      string // the new reason; "" if the settings have none
	annotations map[string]any
	labels      map[string]any
	spec        map[string]any
	// power changes the state of a node of a pool; nil: it does not change.
	power func(*v1alpha1.PoolNode)
	// cancelReboot: a reboot that was requested is not wanted any more.
	cancelReboot bool
}

// nodeSetter adds a setting to the patch.
type nodeSetter func(s *Service, p *nodePatch, v string) error

// nodeSetters are scontrol's parameters of a node, in lower case.
var nodeSetters = map[string]nodeSetter{
	"reason":            setNodeReason,
	"state":             setNodeState,
	"comment":           setNodeComment,
	"features":          setFeatures,
	"availablefeatures": setFeatures,
	"activefeatures":    checkActiveFeatures,
	"weight":            setWeight,
	"extra":             setNodeExtra,
	"cpubind":           setNodeCPUBind,
	"gres":              setNodeGRES,
	"nodeaddr":          unsupportedNodeSetting,
	"nodehostname":      unsupportedNodeSetting,
}

// nodeSettingOrder returns the names of the settings in the order in which they apply.
// The reason is first, because the state depends on it, and the active features are
// last, because they are among the available ones.
func nodeSettingOrder(settings map[string]string) []string {
	place := map[string]int{"reason": -1, "activefeatures": 1}
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(cmp.Compare(place[a], place[b]), cmp.Compare(a, b))
	})
}

// updateNodes returns the action of scontrol update nodename=..., which changes the
// labels and annotations of Node objects and cordons them.
func (s *Service) updateNodes(c *directory.Caller, settings map[string]string, count int) (entityAction, error) {
	keys := nodeSettingOrder(settings)
	for _, key := range keys {
		if nodeSetters[key] == nil {
			return nil, change.UnknownParameter(key, settings[key])
		}
	}
	if err := s.permitEntity(c, authz.Node, authz.Update, refusal.InvalidUser); err != nil {
		return nil, err
	}
	switch {
	case count == 0:
		return nil, refusal.InvalidNode
	case len(settings) == 0:
		return nil, refusal.NoChanges
	}
	rows := map[string]status.Node{}
	for _, n := range s.Nodes() {
		rows[n.Name] = n
	}
	return withName(func(ctx context.Context, name string) error {
		row, ok := rows[name]
		if !ok {
			return refusal.InvalidNode
		}
		p := &nodePatch{
			row:         &row,
			features:    row.Features,
			caller:      c,
			annotations: map[string]any{},
			labels:      map[string]any{},
			spec:        map[string]any{},
		}
		for _, key := range keys {
			if err := nodeSetters[key](s, p, settings[key]); err != nil {
				return err
			}
		}
		return s.writeNode(ctx, p)
	}), nil
}

func (s *Service) writeNode(ctx context.Context, p *nodePatch) error {
	if p.cancelReboot {
		err := s.changeReboot(ctx, p.row, cancelReboot)
		if err != nil || len(p.annotations)+len(p.labels)+len(p.spec) == 0 {
			return err
		}
	}
	if p.power != nil {
		_, exists := s.Cluster.Nodes.Get(cmp.Or(p.row.Object, p.row.Name))
		if err := s.writePower(ctx, p); err != nil || !exists || len(p.annotations)+len(p.labels)+len(p.spec) == 0 {
			return err
		}
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": p.annotations, "labels": p.labels}}
	if len(p.spec) > 0 {
		patch["spec"] = p.spec
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(p.row.Object, p.row.Name)}}
	if err := s.patch(ctx, n, patch); err != nil {
		return err
	}
	s.Cluster.Nodes.Apply(n)
	return nil
}

// setNodeReason stores the reason with its author and time, as sinfo shows it.
func setNodeReason(s *Service, p *nodePatch, v string) error {
	p.reason = v
	if v == "" {
		p.annotations[wire.AnnotationReason] = nil
		return nil
	}
	p.annotations[wire.AnnotationReason] = s.reasonText(p.caller, v)
	return nil
}

// reasonText returns the value of wire.AnnotationReason for a reason.
func (s *Service) reasonText(c *directory.Caller, reason string) string {
	author := c.Name
	if c.User == nil {
		author = "root" // an administrator of the Kubernetes cluster
	}
	text := singleLine(reason)
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "") // without a part of a character
	return text + " [" + author + "@" + s.Now().UTC().Format(reasonTimeFormat) + "]"
}

// setNodeState cordons or uncordons the node. A cordon needs a reason.
func setNodeState(s *Service, p *nodePatch, v string) error {
	if strings.EqualFold(v, "RESUME") && slices.Contains(p.row.Flags, "POWERED_DOWN") {
		return setNodePower(s, p, stateResume)
	}
	switch state := strings.ToUpper(v); state {
	case "DOWN", "DRAIN", "FAIL":
		if p.reason == "" && p.row.Reason == "" {
			return refusal.NodeReasonMissing
		}
		if slices.Contains(p.row.Flags, flagRebootIssued) {
			p.annotations[wire.AnnotationReboot] = nil // the node stays as it is when it returns
		}
		p.annotations[wire.AnnotationState] = annotationDrain
		if state == stateDown {
			p.annotations[wire.AnnotationState] = annotationDown
		}
		p.spec["unschedulable"] = true
	case stateResume, "IDLE", "UNDRAIN":
		if state == stateResume && !isOut(p.row) && !s.isCordoned(p.row) {
			return refusal.InvalidNodeState
		}
		p.annotations[wire.AnnotationState] = nil
		p.annotations[wire.AnnotationReboot] = nil
		if p.reason == "" {
			p.annotations[wire.AnnotationReason] = nil
		}
		p.spec["unschedulable"] = nil
	case statePowerUp, statePowerDown, "POWER_DOWN_ASAP", statePowerDownForce:
		return setNodePower(s, p, state)
	case "CANCEL_REBOOT":
		p.cancelReboot = true
	case "NORESP", "FUTURE":
		return refusal.NotSupported
	default:
		return refusal.InvalidNodeState
	}
	return nil
}

// isOut reports whether the row is that of a node that is down or drained.
func isOut(row *status.Node) bool {
	return row.State == stateDown || slices.Contains(row.Flags, flagDrain)
}

// isCordoned reports whether the row's object is that of a node that is down or drained: rows are
// those of the newest plan, and may be older than the object.
func (s *Service) isCordoned(row *status.Node) bool {
	n, ok := s.Cluster.Nodes.Get(cmp.Or(row.Object, row.Name))
	return ok && (n.Spec.Unschedulable || n.Annotations[wire.AnnotationState] != "")
}

func setNodeComment(_ *Service, p *nodePatch, v string) error {
	p.annotations[wire.AnnotationComment] = v
	return nil
}

func setNodeExtra(_ *Service, p *nodePatch, v string) error {
	p.annotations[wire.AnnotationExtra] = v
	return nil
}

// nodeBindings are the values of CpuBind, by what scontrol accepts.
var nodeBindings = map[string]string{
	"none": "none", "board": "boards", "boards": "boards", "socket": "sockets", "sockets": "sockets",
	"ldom": "ldoms", "ldoms": "ldoms", "core": "cores", "cores": "cores", "thread": "threads", "threads": "threads",
}

// setNodeCPUBind stores how tasks on the node are bound by default; "off" removes it.
func setNodeCPUBind(_ *Service, p *nodePatch, v string) error {
	word := strings.ToLower(v)
	if word == "off" {
		p.annotations[wire.AnnotationCPUBind] = nil
		return nil
	}
	binding, ok := nodeBindings[word]
	if !ok {
		return refusal.Text("Invalid input CpuBind=" + v)
	}
	p.annotations[wire.AnnotationCPUBind] = binding
	return nil
}

// setNodeGRES accepts the generic resources that the node has, which its kubelet reports.
func setNodeGRES(_ *Service, p *nodePatch, v string) error {
	if v != p.row.GRES {
		return refusal.InvalidGRES
	}
	return nil
}

// setFeatures replaces the labels of the node's features.
func setFeatures(_ *Service, p *nodePatch, v string) error {
	for _, f := range p.row.Features {
		p.labels[wire.LabelFeature+f] = nil
	}
	p.features = query.SplitList(v)
	for _, f := range p.features {
		p.labels[wire.LabelFeature+f] = "true"
	}
	p.annotations[wire.AnnotationFeatures] = v
	return nil
}

// checkActiveFeatures changes nothing: every available feature is active, also those
// that the same command adds.
func checkActiveFeatures(_ *Service, p *nodePatch, v string) error {
	for _, f := range query.SplitList(v) {
		if !slices.Contains(p.features, f) {
			return refusal.FeaturesNotSubset
		}
	}
	return nil
}

// setWeight sets the node's weight; without one it is 1.
func setWeight(_ *Service, p *nodePatch, v string) error {
	p.annotations[wire.AnnotationWeight] = nil
	if v == "" {
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > maxWeight {
		return refusal.NotSupported
	}
	if n > 1 {
		p.annotations[wire.AnnotationWeight] = strconv.FormatInt(n, 10)
	}
	return nil
}

func unsupportedNodeSetting(*Service, *nodePatch, string) error { return refusal.NotSupported }
