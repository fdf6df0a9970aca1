package srun

import (
	"fmt"
	"maps"

	"github.com/berth-hpc/berth/internal/step"
)

// handleMPI handles the exchanges of MPI processes between parts. srun is the root
// of the agents' trees then. It returns whether f is such a frame. Frames may be
// sent from the reader, because agents never stop reading.
func (s *steps) handleMPI(from *run, f *step.Frame) (bool, error) {
	switch f.Type {
	case step.FrameFence:
		return true, s.arrive(f)
	case step.FrameCollect:
		return true, s.collect(f)
	case step.FrameModex:
		for _, r := range s.parts {
			if r != from && f.Task >= r.first && f.Task-r.first < r.created.Tasks {
				return true, r.conn.Send(f)
			}
		}
		return true, nil
	}
	return false, nil
}

// arrive records that all tasks of a part have reached a PMI fence.
func (s *steps) arrive(f *step.Frame) error {
	var part step.Fence
	if err := f.Decode(&part); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fence.Put == nil {
		s.fence.Put = map[string]string{}
	}
	maps.Copy(s.fence.Put, part.Put)
	s.fence.Waits = s.fence.Waits || part.Waits
	if s.waits++; s.waits < len(s.parts) || !s.fence.Waits {
		return nil
	}
	all, err := step.JSON(step.FrameRelease, &s.fence)
	s.fence, s.waits = step.Fence{}, 0
	if err != nil {
		return err
	}
	return s.sendAll(all)
}

// collect adds a part's contribution to a PMIx fence.
func (s *steps) collect(f *step.Frame) error {
	part, err := step.ReadCollective(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fences == nil {
		s.fences = map[string]*step.Collective{}
	}
	c := s.fences[part.Key]
	if c == nil {
		c = &step.Collective{Key: part.Key, Need: part.Need}
		s.fences[part.Key] = c
	}
	c.Parts += part.Parts
	c.Data = append(c.Data, part.Data...)
	if c.Parts > c.Need || len(c.Data) > step.MaxModex/2 {
		return fmt.Errorf("%w: fence %q of %d/%d parts", step.ErrFrame, c.Key, c.Parts, c.Need)
	}
	if c.Parts == c.Need {
		delete(s.fences, c.Key)
		return s.sendAll(c.Frame(step.FrameCollected))
	}
	return nil
}

// sendAll sends a frame to all parts.
func (s *steps) sendAll(f *step.Frame) error {
	for _, r := range s.parts {
		if err := r.conn.Send(f); err != nil {
			return err
		}
	}
	return nil
}
