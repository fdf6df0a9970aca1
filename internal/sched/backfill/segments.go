package backfill

import (
	"cmp"
	"slices"
)

// SegmentLayout is how segments of a job's nodes are placed (sbatch(1),
// --segment).
type SegmentLayout int

// Layouts of segments.
const (
	SegmentsDefault      SegmentLayout = iota // leave as few free nodes as possible
	SegmentsConsolidated                      // in as few blocks as possible
	SegmentsSpread                            // each in a different block
)

// pickSegments returns nodes in segments of s.Segment nodes below one leaf
// switch.
func (e *engine) pickSegments(s *requestShape, all []candidate) []candidate {
	blocks := e.groupByLeaf(all)
	fewest, most := roundUp(s.leastNodes, s.Segment), len(all)
	if s.MaxNodes > 0 {
		most = min(most, s.MaxNodes)
	}
	if s.Tasks > 0 && !s.ExactPerNode { // every node has a task
		most = min(most, s.Tasks)
	}
	most -= most % s.Segment
	step := s.Segment
	if (s.MaxNodes > s.leastNodes || s.SpreadJob) && !s.UseMinNodes {
		fewest, most, step = most, fewest, -step
	}
	for n := fewest; (n-most)*step <= 0; n += step {
		if p := s.inSegments(blocks, n); p != nil {
			return p
		}
	}
	return nil
}

// inSegments returns n nodes of the blocks, or nil. If the preferred nodes cannot run all
// tasks, it returns those with the highest capacity.
func (s *requestShape) inSegments(blocks [][]candidate, n int) []candidate {
	only := s.Job
	only.MinNodes, only.MaxNodes = n, n
	full := make([][]candidate, len(blocks))
	for i := range blocks {
		full[i] = byCapacity(blocks[i], 0)
	}
	// As a last resort use the blocks with the highest capacity, whatever the layout.
	byTasks := func(blocks [][]candidate) [][]candidate {
		blocks = slices.Clone(blocks)
		slices.SortStableFunc(blocks, func(a, b []candidate) int { return cmp.Compare(totalTasks(b), totalTasks(a)) })
		return blocks
	}
	count := n / s.Segment
	for _, from := range [][][]candidate{s.inOrder(blocks, count), s.inOrder(full, count), byTasks(full)} {
		if chosen := s.chooseSegments(from, count); chosen != nil {
			if p := only.pick(chosen); p != nil {
				return p
			}
		}
	}
	return nil
}

// chooseSegments returns the nodes of count segments, or nil: first as many segments as the
// required nodes need in their blocks, then of one block after the other.
func (s *requestShape) chooseSegments(blocks [][]candidate, count int) []candidate {
	take, left := make([]int, len(blocks)), count
	for i, b := range blocks {
		take[i] = min(s.segmentsOf(b), (s.countRequired(b)+s.Segment-1)/s.Segment, left)
		left -= take[i]
	}
	var chosen []candidate
	for i, b := range blocks {
		more := min(s.segmentsOf(b)-take[i], left)
		left -= more
		first, _ := s.requiredFirst(b)
		chosen = append(chosen, first[:(take[i]+more)*s.Segment]...)
	}
	if left > 0 {
		return nil
	}
	return inNodeOrder(chosen)
}

// inOrder returns the blocks in the order in which the job uses them.
func (s *requestShape) inOrder(blocks [][]candidate, count int) [][]candidate {
	blocks = slices.Clone(blocks)
	slices.SortStableFunc(blocks, func(a, b []candidate) int {
		if s.SegmentLayout == SegmentsConsolidated { // the smallest that has room for all segments, else the largest
			return cmp.Or(
				cmp.Compare(min(s.segmentsOf(b), count), min(s.segmentsOf(a), count)),
				cmp.Compare(len(a), len(b)),
			)
		}
		return cmp.Or(cmp.Compare(len(a)%s.Segment, len(b)%s.Segment), cmp.Compare(len(a), len(b)))
	})
	return blocks
}

// segmentsOf returns the maximum number of segments in a block.
func (s *requestShape) segmentsOf(block []candidate) int {
	n := len(block) / s.Segment
	if s.SegmentLayout == SegmentsSpread {
		n = min(n, 1)
	}
	return n
}

// countRequired returns the number of required nodes in the block.
func (s *requestShape) countRequired(block []candidate) int {
	n := 0
	for i := range block {
		if slices.Contains(s.Required, block[i].node) {
			n++
		}
	}
	return n
}
