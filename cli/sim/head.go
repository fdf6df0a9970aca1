package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// pinnedHead keeps a job that could not start at the head of the queue at the head, even if
// jobs with a higher priority are submitted later, as published evaluations of policies
// without backfill do (RLScheduler, SC'20).
type pinnedHead struct {
	queue   planner
	waiting []*backfill.Job // in the order of the queue
}

// submit adds a job that was added to the queue.
func (h *pinnedHead) submit(j *backfill.Job) {
	i, _ := slices.BinarySearchFunc(h.waiting, j, func(a, b *backfill.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submit, b.Submit))
	})
	h.waiting = slices.Insert(h.waiting, i, j)
}

// started removes a job that has started.
func (h *pinnedHead) started(id int64) {
	h.waiting = slices.DeleteFunc(h.waiting, func(j *backfill.Job) bool { return j.ID == id })
}

// pin gives the job at the head the highest priority.
func (h *pinnedHead) pin() {
	if len(h.waiting) == 0 || h.waiting[0].Priority == math.MaxInt64 {
		return
	}
	j := h.waiting[0]
	h.queue.Withdraw(j.ID)
	j.Priority = math.MaxInt64
	h.queue.Submit(j)
}
