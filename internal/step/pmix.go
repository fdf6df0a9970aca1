package step

import (
	"encoding/binary"
	"fmt"

	"github.com/berth-hpc/berth/translate/env"
)

// MPI kinds of Command.MPI.
const (
	MPIPMI2 = "pmi2" // PMI-1 and PMI-2, spoken by the agents themselves
	MPIPMIx = "pmix" // by OpenPMIx's server library, in a process beside each agent
)

// MaxModex bounds what the processes of a step may exchange at once by PMIx, in
// bytes.
const MaxModex = 128 << 20

// PMIxJob tells a node's PMIx server about its step.
type PMIxJob struct {
	Name  string         `json:"name"` // of the name space
	Nodes []env.StepNode `json:"nodes"`
	Node  int32          `json:"node"` // of these, the server's own
	Dir   string         `json:"dir"`  // folder for its files
}

// PMIxReady has what the environment of each local task is to have.
type PMIxReady struct {
	Env [][]string `json:"env"`
}

// Collective is a PMIx fence: what the servers of Parts nodes have given to it
// so far, of Need in all. Data is what they gave, one after the other.
type Collective struct {
	Key         string // the same on all nodes that take part
	Parts, Need uint32
	Data        []byte
}

// Frame makes a frame of c.
func (c *Collective) Frame(t Type) *Frame {
	b := make([]byte, 0, 10+len(c.Key)+len(c.Data))
	b = binary.BigEndian.AppendUint32(b, c.Parts)
	b = binary.BigEndian.AppendUint32(b, c.Need)
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.Key)))
	b = append(b, c.Key...)
	return &Frame{Type: t, Task: AllTasks, Data: append(b, c.Data...)}
}

// ReadCollective reads a frame that Collective.Frame made. Data is the frame's.
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

// Modex is a question for what task Of has put (the frame's task is Of), or
// the answer to it (the frame's task is From).
type Modex struct {
	Answer bool
	ID     uint32 // of the question, for its server
	From   uint32 // a task on the node that asks
	Of     uint32
	Status int32 // of an answer: PMIx's
	// Data of a question is the key that is wanted, or empty; of an answer,
	// what the task has put.
	Data []byte
}

const modexSize = 17

// Frame makes a frame of m, for the node where it has to go.
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

// ReadModex reads a frame that Modex.Frame made. Data is the frame's.
func ReadModex(f *Frame) (*Modex, error) {
	if len(f.Data) < modexSize {
		return nil, fmt.Errorf("%w: modex of %d bytes", ErrFrame, len(f.Data))
	}
	n := func(i int) uint32 { return binary.BigEndian.Uint32(f.Data[1+4*i:]) }
	return &Modex{
		Answer: f.Data[0] == 1, ID: n(0), From: n(1), Of: n(2), Status: int32(n(3)), Data: f.Data[modexSize:],
	}, nil
}
