package scontrol

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

// reboot requests that nodes reboot: reboot [ASAP] [nextstate=STATE] [reason=TEXT] NODES.
func reboot(ctx context.Context, o *Options, args []string) error {
	op := status.Operation{Verb: status.OpReboot, Entity: status.EntityNode, Set: map[string]string{}}
	for len(args) > 0 {
		key, v, found := strings.Cut(args[0], "=")
		switch {
		case strings.EqualFold(args[0], "ASAP"):
			op.Set["ASAP"] = "1"
		case found && strings.EqualFold(key, "nextstate"):
			state, ok := nextState(v)
			switch {
			case v == "":
				return plain("missing state")
			case !ok:
				return plain("Invalid state: %s\nValid states: DOWN, RESUME", printable.Escape(v))
			}
			op.Set["NextState"] = state
		case found && strings.EqualFold(key, "reason"):
			op.Set["Reason"] = v
		case len(args) > 1:
			return plain("too many arguments for keyword:reboot")
		default:
			return o.rebootNodes(ctx, op, args[0])
		}
		args = args[1:]
	}
	return plain("Missing node list. Specify ALL|<NodeList>")
}

// nextState returns the state after a reboot that text is or abbreviates.
func nextState(text string) (state string, ok bool) {
	for _, state := range []string{"DOWN", "RESUME"} {
		if keyvalue.Abbreviates(text, state, 1) {
			return state, true
		}
	}
	return "", false
}

func (o *Options) rebootNodes(ctx context.Context, op status.Operation, list string) error {
	var err error
	if op.Targets, err = o.nodes(ctx, list); err != nil {
		return plain("scontrol_reboot_nodes error: Invalid node name specified")
	}
	return o.change(ctx, op, func(item status.OperationStatus) error {
		return plain("scontrol_reboot_nodes error: %s", escapeLines(item.Error))
	})
}

// cancelReboot withdraws the reboots of nodes.
func cancelReboot(ctx context.Context, o *Options, args []string) error {
	if len(args) == 0 {
		return plain("missing argument for keyword:cancel_reboot")
	}
	targets, err := o.nodes(ctx, args[0])
	if err != nil {
		return plain("slurm_update error: Invalid node name specified")
	}
	op := status.Operation{
		Verb: status.OpUpdate, Entity: status.EntityNode, Targets: targets,
		Set: map[string]string{"State": "CANCEL_REBOOT"},
	}
	return o.change(ctx, op, func(item status.OperationStatus) error {
		return plain("slurm_update error: %s", escapeLines(item.Error))
	})
}
