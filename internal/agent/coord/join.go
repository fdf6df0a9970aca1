package coord

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// join is a step's place in the larger one that it is a part of. The tasks and
// what they see have the numbers of the whole; the client, who puts the parts
// together, and the records of this job have those of the part. A nil join
// changes nothing.
type join struct{ step.Join }

// awaitJoin tells the client of a part that its place is there and waits until
// the others have theirs; false: the client does not want it any more.
func (s *session) awaitJoin(ctx context.Context, g *grant, created *step.Created) bool {
	if s.conn.SendJSON(step.FrameCreated, created) != nil {
		return false
	}
	select {
	case j := <-s.joined:
		if !fits(j, g) {
			return false
		}
		s.c.renumber(g, j.StepID)
		created.StepID = g.id
		s.join = &join{*j}
		return true
	case <-ctx.Done():
		return false
	}
}

// takeJoin hands a client's Join over and returns when the step has begun:
// what the client sends behind it is for the tasks.
func (s *session) takeJoin(f *step.Frame) bool {
	j := new(step.Join)
	if f.Decode(j) != nil {
		return false
	}
	select {
	case s.joined <- j:
	default:
		return false // a second one
	}
	<-s.begun
	return true
}

// fits tells whether j is about a step whose part g is.
func fits(j *step.Join, g *grant) bool {
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
		same := slices.EqualFunc(g.nodes[i].Tasks, j.Nodes[first+i].Tasks, func(own uint32, all int32) bool {
			return int64(own)+int64(j.FirstTask) == int64(all) && int(all) < total
		})
		if !same {
			return false
		}
	}
	return true
}

// renumber gives a step that has not begun the number that it has in the other
// components, if that is not taken here.
func (c *Coordinator) renumber(g *grant, id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < c.next || c.live[g.id] == nil {
		return
	}
	c.live[id] = c.live[g.id]
	delete(c.live, g.id)
	g.id, c.next = id, id+1
}

// fit makes the launch of a part one of the whole.
func (j *join) fit(l *step.Launch) {
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

// down gives a frame of the client the task's number in the whole.
func (j *join) down(f *step.Frame) *step.Frame {
	if j == nil || f.Task == step.AllTasks || f.Type != step.FrameStdin && f.Type != step.FrameStdinEOF {
		return f
	}
	g := *f
	g.Task += j.FirstTask
	return &g
}

// up gives a frame of the tasks their numbers in the part.
func (j *join) up(f *step.Frame) *step.Frame {
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
			j.own(v.Tasks)
		})
	case step.FrameExit:
		return rewrite(f, func(v *step.Exit) { j.own(v.Tasks) })
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

func (j *join) own(tasks []uint32) {
	for i := range tasks {
		tasks[i] -= j.FirstTask
	}
}

// rewrite is f with its message changed; one that cannot be read stays as it is,
// for its reader to refuse.
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
