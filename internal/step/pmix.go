package step

import (
	"encoding/binary"
	"fmt"

	"github.com/berth-hpc/berth/translate/env"
)

// Values of Command.MPI.
const (
	MPIPMI2 = "pmi2" // PMI-1 and PMI-2, served by the agents themselves
	MPIPMIx = "pmix" // served by OpenPMIx's library, in a process beside each agent
)

// MaxModex is the maximum number of bytes that the processes of a step may
// exchange at once by PMIx.
const MaxModex = 128 << 20

// PMIxJob describes its step to a node's PMIx server.
type PMIxJob struct {
	Name  string         `json:"name"` // of the namespace
	Nodes []env.StepNode `json:"nodes"`
	Node  int32          `json:"node"` // index of the server's own node
	Dir   string         `json:"dir"`  // directory for its files
}

// PMIxReady contains the variables to add to the environment of each local task.
type PMIxReady struct {
	Env [][]string `json:"env"`
}

// Collective is a PMIx fence to which the servers of Parts nodes have
// contributed so far, out of Need. Data is the concatenation of their
// contributions.
type Collective struct {
	Key         string // the same on all participating nodes
	Parts, Need uint32
	Data        []byte
}

// Frame encodes c in a frame of type t (FrameCollect or FrameCollected).
func (c *Collective) Frame(t Type) *Frame {
	b := make([]byte, 0, 10+len(c.Key)+len(c.Data))
	b = binary.BigEndian.AppendUint32(b, c.Parts)
	b = binary.BigEndian.AppendUint32(b, c.Need)
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.Key)))
	b = append(b, c.Key...)
	return &Frame{Type: t, Task: AllTasks, Data: append(b, c.Data...)}
}

// ReadCollective decodes a frame that Collective.Frame encoded. Data shares the memory of
// the frame's. The error wraps ErrFrame.
func ReadCollective(f *Frame) (*Collective, error) {
	b := f.Data
	if len(b) < 10 {
		return nil, fmt.Errorf("%w: fence of %d bytes", ErrFrame, len(b))
	}
	c := &Collective{Parts: binary.BigEndian.Uint32(b), Need: binary.BigEndian.Uint32(b[4:])}
	n := int(binary.BigEndian.Uint16(b[8:]))
	if b = b[10:]; n > len(b) || c.Parts == 0 || c.Parts > c.Need {
		return nil, fmt.Errorf("%w: fence of %d/%d parts", ErrFrame, c.Parts, c.Need)
	}
	c.Key, c.Data = string(b[:n]), b[n:]
	return c, nil
}

// Modex is a direct exchange between two nodes: a request for what task Of has
// put (the frame's task is Of), or the response to it (the frame's task is From).
type Modex struct {
	Answer bool
	ID     uint32 // of the request, for its server
	From   uint32 // a task on the requesting node
	Of     uint32
	Status int32 // PMIx status of a response
	// Data of a request is the requested key, or empty; that of a response is
	// what the task has put.
	Data []byte
}

const modexSize = 17

// Frame encodes m, addressed to the node of the task that the frame names.
func (m *Modex) Frame() *Frame {
	f := &Frame{Type: FrameModex, Task: m.Of, Data: make([]byte, 1, modexSize+len(m.Data))}
	if m.Answer {
		f.Data[0], f.Task = 1, m.From
	}
	for _, n := range []uint32{m.ID, m.From, m.Of, uint32(m.Status)} {
		f.Data = binary.BigEndian.AppendUint32(f.Data, n)
	}
	f.Data = append(f.Data, m.Data...)
	return f
}

// ReadModex decodes a frame that Modex.Frame encoded. Data shares the memory of the
// frame's. The error wraps ErrFrame.
func ReadModex(f *Frame) (*Modex, error) {
	if len(f.Data) < modexSize {
		return nil, fmt.Errorf("%w: modex of %d bytes", ErrFrame, len(f.Data))
	}
	n := func(i int) uint32 { return binary.BigEndian.Uint32(f.Data[1+4*i:]) }
	return &Modex{
		Answer: f.Data[0] == 1, ID: n(0), From: n(1), Of: n(2), Status: int32(n(3)), Data: f.Data[modexSize:],
	}, nil
}
