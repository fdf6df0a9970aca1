package coord

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// part is a step that is part of a larger step over several components of a heterogeneous
// job. The tasks and their environment have the numbers of the larger step. The client,
// which joins the parts, and the records of this job have the numbers of the part. A nil
// part translates nothing.
type part struct{ step.Join }

// waitForJoin reports to the client of a part that it is allocated, and waits
// until the other parts are. It returns false if the client gave up.
func (s *session) waitForJoin(ctx context.Context, g *allocation, created *step.Created) bool {
	if s.conn.SendJSON(step.FrameCreated, created) != nil {
		return false
	}
	select {
	case j := <-s.joined:
		if !matches(j, g) {
			return false
		}
		s.c.renumber(g, j.StepID)
		created.StepID = g.id
		s.part = &part{*j}
		return true
	case <-ctx.Done():
		return false
	}
}

// receiveJoin delivers the client's Join and returns when the step has started, because
// later frames of the client are for the tasks.
func (s *session) receiveJoin(f *step.Frame) bool {
	j := new(step.Join)
	if f.Decode(j) != nil {
		return false
	}
	select {
	case s.joined <- j:
	default:
		return false // a second one
	}
	<-s.settled
	return true
}

// matches reports whether j describes a step of which g is a part.
func matches(j *step.Join, g *allocation) bool {
	first := int(j.FirstNode)
	if first < 0 || len(j.Nodes) > placement.MaxTasks || first+len(g.nodes) > len(j.Nodes) {
		return false
	}
	total := 0
	for i := range j.Nodes {
		total += len(j.Nodes[i].Tasks)
	}
	if total > placement.MaxTasks {
		return false
	}
	for i := range g.nodes {
		same := slices.EqualFunc(g.nodes[i].Tasks, j.Nodes[first+i].Tasks, func(inPart uint32, inWhole int32) bool {
			return int64(inPart)+int64(j.FirstTask) == int64(inWhole) && int(inWhole) < total
		})
		if !same {
			return false
		}
	}
	return true
}

// renumber changes the number of a step that has not started to its number in the other
// components, if that number is free here.
func (c *Coordinator) renumber(g *allocation, id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < c.next || c.live[g.id] == nil {
		return
	}
	c.live[id] = c.live[g.id]
	delete(c.live, g.id)
	g.id, c.next = id, id+1
}

// adapt changes the numbers in the launch of a part to those of the larger step.
func (j *part) adapt(l *step.Launch) {
	if l.Step.Distribution == "" {
		l.Step.Distribution = l.Step.DefaultDistribution()
	}
	l.Step.ID, l.Step.Nodes, l.Step.Joined = j.StepID, j.Nodes, true
	l.Nodes = slices.Clone(l.Nodes)
	for i := range l.Nodes {
		n := &l.Nodes[i]
		n.Step += j.FirstNode
		n.Tasks = slices.Clone(n.Tasks)
		for k := range n.Tasks {
			n.Tasks[k] += j.FirstTask
		}
	}
}

// toWhole returns a frame of the client with the task's number in the larger step.
func (j *part) toWhole(f *step.Frame) *step.Frame {
	if j == nil || f.Task == step.AllTasks || f.Type != step.FrameStdin && f.Type != step.FrameStdinEOF {
		return f
	}
	g := *f
	g.Task += j.FirstTask
	return &g
}

// toPart returns a frame of the tasks with their numbers in the part.
func (j *part) toPart(f *step.Frame) *step.Frame {
	if j == nil {
		return f
	}
	switch f.Type {
	case step.FrameStdout, step.FrameStderr, step.FrameStdinAck, step.FrameStdinClosed:
		g := *f
		g.Task -= j.FirstTask
		return &g
	case step.FrameStarted:
		return rewrite(f, func(v *step.Started) {
			v.Node -= j.FirstNode
			j.renumberTasks(v.Tasks)
		})
	case step.FrameExit:
		return rewrite(f, func(v *step.Exit) { j.renumberTasks(v.Tasks) })
	case step.FrameNodeLost:
		return rewrite(f, func(v *step.NodeLost) { v.Node -= j.FirstNode })
	case step.FrameSamples:
		return rewrite(f, func(list *[]step.TaskSample) {
			for i := range *list {
				(*list)[i].Task -= j.FirstTask
			}
		})
	}
	return f
}

func (j *part) renumberTasks(tasks []uint32) {
	for i := range tasks {
		tasks[i] -= j.FirstTask
	}
}

// rewrite returns f with its message changed. It returns a malformed message unchanged; its
// reader refuses it.
func rewrite[T any](f *step.Frame, change func(*T)) *step.Frame {
	v := new(T)
	if f.Decode(v) != nil {
		return f
	}
	change(v)
	g, err := step.JSON(f.Type, v)
	if err != nil {
		return f
	}
	g.Flags, g.Task = f.Flags, f.Task
	return g
}
