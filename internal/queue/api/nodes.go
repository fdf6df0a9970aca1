package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	errBadNode      Refused = "Invalid node name specified"
	errNodeState    Refused = "Invalid node state specified"
	errActive       Refused = "Active features not subset of available features"
	errNodeReason   Refused = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
	errNoChanges    Refused = "No changes specified"
	reasonTime              = "2006-01-02T15:04:05"
	maxNodeReason           = 512
	flagDrain               = "DRAIN"
	stateDown               = "DOWN"
	annotationDown          = "down"
	annotationDrain         = "drain"
)

// nodeAction is scontrol update nodename=...: a state with a reason is a
// cordon that says why.
func (o *Operations) nodeAction(c *directory.Caller, set map[string]string, targets int) (entityActor, error) {
	for key, v := range set {
		if !slices.Contains(nodeKeys, key) {
			return nil, change.Unknown(key, v)
		}
	}
	switch {
	case o.denied(c, authz.Node, authz.Update):
		return nil, errInvalidUser
	case targets == 0:
		return nil, errBadNode
	case len(set) == 0:
		return nil, errNoChanges
	}
	rows := map[string]status.Node{}
	for _, n := range o.Pool.NodesView() {
		rows[n.Name] = n
	}
	return func(ctx context.Context, name string) (string, error) {
		row, ok := rows[name]
		if !ok {
			return name, errBadNode
		}
		object := row.Object
		if object == "" {
			object = name
		}
		patch, err := o.nodePatch(c, &row, set)
		if err != nil {
			return name, err
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: object}}
		if err := o.merge(ctx, n, patch, false); err != nil {
			return name, err
		}
		o.Cluster.Nodes.Apply(n)
		return name, nil
	}, nil
}

// nodeKeys are scontrol's parameters of a node, in lower case.
var nodeKeys = []string{"reason", "state", "comment", "features", "availablefeatures", "activefeatures", "weight",
	"gres", "cpubind", "extra", "nodeaddr", "nodehostname", "resumeafter"}

// nodePatch is what the settings mean for the Node object.
func (o *Operations) nodePatch(c *directory.Caller, row *status.Node, set map[string]string) (map[string]any, error) {
	notes, labels, spec := map[string]any{}, map[string]any{}, map[string]any{}
	if reason, ok := set["reason"]; ok {
		if notes[wire.AnnotationReason] = nil; reason != "" {
			notes[wire.AnnotationReason] = o.signed(reason, c)
		}
	}
	for key, v := range set {
		var err error
		switch key {
		case "reason":
		case "state":
			err = nodeState(row, v, notes, spec)
		case "comment":
			notes[wire.AnnotationComment] = v
		case "features", "availablefeatures":
			setFeatures(row.Features, v, labels)
			notes[wire.AnnotationFeatures] = v
		case "activefeatures":
			if !subset(v, row.Features) {
				err = errActive
			}
		case "weight":
			err = nodeWeight(v, notes)
		default: // of nodeKeys
			err = errNotSupported
		}
		if err != nil {
			return nil, err
		}
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": notes, "labels": labels}}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return patch, nil
}

// mostWeight is what slurm.conf takes here.
const mostWeight = 1<<31 - 1

// nodeWeight sets the node's weight; none is 1.
func nodeWeight(v string, notes map[string]any) error {
	notes[wire.AnnotationWeight] = nil
	if v == "" {
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > mostWeight {
		return errNotSupported
	}
	if n > 1 {
		notes[wire.AnnotationWeight] = strconv.FormatInt(n, 10)
	}
	return nil
}

// signed is a reason with who gave it and when.
func (o *Operations) signed(reason string, c *directory.Caller) string {
	name := c.Name
	if c.User == nil {
		name = "root" // an administrator of the cluster
	}
	reason = oneLine(reason)
	return reason[:min(len(reason), maxNodeReason)] + " [" + name + "@" + o.Now().UTC().Format(reasonTime) + "]"
}

// nodeState sets what a state of scontrol means.
func nodeState(row *status.Node, v string, notes, spec map[string]any) error {
	state := strings.ToUpper(v)
	_, reasoned := notes[wire.AnnotationReason].(string)
	down, drained := row.State == stateDown, slices.Contains(row.Flags, flagDrain)
	switch state {
	case "DOWN", "DRAIN", "FAIL":
		if !reasoned && row.Reason == "" {
			return errNodeReason
		}
		notes[wire.AnnotationState] = annotationDrain
		if state == "DOWN" {
			notes[wire.AnnotationState] = annotationDown
		}
		spec["unschedulable"] = true
	case "RESUME", "IDLE", "UNDRAIN":
		if state == "RESUME" && !down && !drained {
			return errNodeState
		}
		notes[wire.AnnotationState] = nil
		if !reasoned {
			notes[wire.AnnotationReason] = nil
		}
		spec["unschedulable"] = nil
	case "NORESP", "FUTURE", "POWER_DOWN", "POWER_UP", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "CANCEL_REBOOT":
		return errNotSupported
	default:
		return errNodeState
	}
	return nil
}

func setFeatures(had []string, v string, labels map[string]any) {
	for _, f := range had {
		labels[wire.LabelFeature+f] = nil
	}
	for _, f := range list(map[string][]string{"": {v}}, "") {
		labels[wire.LabelFeature+f] = "true"
	}
}

func subset(v string, of []string) bool {
	for _, f := range list(map[string][]string{"": {v}}, "") {
		if !slices.Contains(of, f) {
			return false
		}
	}
	return true
}
