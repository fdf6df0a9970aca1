package wire

import (
	"encoding/json"
	"time"
)

// NodeReboot is a reboot of a node that an operator has requested: the value of
// AnnotationReboot, as JSON.
type NodeReboot struct {
	// NextState is the state after the reboot: RebootResume, RebootDown, or "" for the one
	// that the node had before.
	NextState string `json:"nextState,omitempty"`
	// Drained: the request has drained the node (ASAP).
	Drained bool `json:"drained,omitempty"`
	// Issued is when the last job had left the node and the reboot began; nil: not yet.
	Issued *time.Time `json:"issued,omitempty"`
	// Accepted: the program that reboots nodes has been run, with success.
	Accepted bool `json:"accepted,omitempty"`
	// BootID is the node's boot ID when the reboot was issued.
	BootID string `json:"bootID,omitempty"`
	// State and Cordoned are AnnotationState and spec.unschedulable from before the reboot.
	State    string `json:"state,omitempty"`
	Cordoned bool   `json:"cordoned,omitempty"`
}

// Values of NodeReboot.NextState, as scontrol reboot takes them.
const (
	RebootResume = "RESUME"
	RebootDown   = "DOWN"
)

// ParseNodeReboot returns the reboot that a Node's annotations describe; nil if there is none,
// or if it cannot be read.
func ParseNodeReboot(annotations map[string]string) *NodeReboot {
	text := annotations[AnnotationReboot]
	if text == "" {
		return nil
	}
	r := &NodeReboot{}
	if json.Unmarshal([]byte(text), r) != nil {
		return nil
	}
	return r
}

// String returns the value of AnnotationReboot.
func (r *NodeReboot) String() string {
	data, err := json.Marshal(r)
	if err != nil {
		return "" // cannot happen: all fields can be encoded
	}
	return string(data)
}
