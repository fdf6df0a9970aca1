// Package ids assigns job ids: integers that increase and are unique in the cluster,
// whichever process assigns them and however it ends.
//
// Ids are reserved in blocks by compare-and-swap on one stored number. The next block is
// reserved before the current one is used up, so that assigning an id hardly ever waits.
// A crash skips what is left of a block.
package ids

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// DefaultBlock is the number of ids in a block.
const DefaultBlock = 100

// DefaultMax is the highest id unless the Cluster object sets another.
const DefaultMax = 1<<31 - 1

// ErrConflict is returned by a Store if the number was written since it was read.
var ErrConflict = errors.New("the stored job id has changed since it was read")

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("another process assigns the job ids now")

// Store holds one number: the first id that is not reserved.
type Store interface {
	// Load reads the number and a version of it; 0 if none was ever stored.
	Load(ctx context.Context) (next int64, version string, err error)
	// Swap replaces the number read as version; ErrConflict if it is no
	// longer that one.
	Swap(ctx context.Context, next int64, version string) error
}

// Limits bound the ids, both included. After Max the ids start again at First.
type Limits struct {
	First int64 // 0: 1
	Max   int64 // 0: DefaultMax
}

// complete returns the limits with their defaults.
func (l Limits) complete() Limits {
	if l.First <= 0 {
		l.First = 1
	}
	if l.Max < l.First {
		l.Max = max(DefaultMax, l.First)
	}
	return l
}

// localIDs is a mask of the bits of a federation's ids that number the jobs of a member.
const localIDs = 1<<v1alpha1.FederationShift - 1

// OfMember returns the limits of the ids of a federation's member with the number id: l limits
// the lower bits, and the upper ones are the number. Bits of l that do not fit are ignored.
func (l Limits) OfMember(id int32) Limits {
	base := int64(id) << v1alpha1.FederationShift
	first, last := max(l.First&localIDs, 1), int64(localIDs)
	if l.Max > 0 && l.Max < localIDs {
		last = max(l.Max, first)
	}
	return Limits{First: base + first, Max: base + last}
}

// Allocator assigns job ids. Create it with New; safe for concurrent use.
// Allocators on the same Store never assign the same id.
type Allocator struct {
	store  Store
	limits func() Limits
	taken  func(id int64) bool
	size   int64

	mu       sync.Mutex
	blocks   []block // in the order they are used
	fetching bool
	arrived  chan struct{} // closed and replaced when a fetch has ended
	failed   error         // of the last fetch
	closed   bool
	floor    int64 // ids below are not reserved, except after wrapping
	base     context.Context
	cancel   context.CancelFunc
}

type block struct{ next, end int64 } // end is exclusive

// New returns an allocator that reserves blocks of size ids (0: DefaultBlock).
// limits is called for each block; taken (nil: never) reports which ids are in use,
// which matters after the ids have started again.
func New(store Store, size int64, limits func() Limits, taken func(id int64) bool) *Allocator {
	if size <= 0 {
		size = DefaultBlock
	}
	a := &Allocator{store: store, limits: limits, taken: taken, size: size, arrived: make(chan struct{})}
	a.base, a.cancel = context.WithCancel(context.Background())
	return a
}

// Start reserves the first block. No id up to highest is assigned: pass the highest id
// that exists, in case the stored number was lost. Call it before Next and Span.
func (a *Allocator) Start(ctx context.Context, highest int64) error {
	a.mu.Lock()
	a.floor = highest + 1
	a.mu.Unlock()
	b, err := a.reserve(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.blocks = append(a.blocks, b)
	a.mu.Unlock()
	return nil
}

// Next assigns an id. It waits only if the store cannot keep up. The error is ErrClosed
// after Close, or that of ctx or of the store.
func (a *Allocator) Next(ctx context.Context) (int64, error) { return a.Span(ctx, 1) }

// Span assigns n consecutive ids, at most as many as a block has, and returns the
// first. Its errors are those of Next.
func (a *Allocator) Span(ctx context.Context, n int64) (int64, error) {
	if n < 1 || n > a.size {
		return 0, fmt.Errorf("cannot assign %d job ids at once", n)
	}
	for {
		id, wait, err := a.draw(n)
		if err != nil {
			return 0, err
		}
		if wait == nil {
			if a.anyTaken(id, n) {
				continue
			}
			return id, nil
		}
		select {
		case <-wait:
			if err := a.lastError(); err != nil {
				return 0, fmt.Errorf("reserving job ids: %w", err)
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for a job id: %w", ctx.Err())
		}
	}
}

// anyTaken reports whether one of n ids from first on is in use.
func (a *Allocator) anyTaken(first, n int64) bool {
	for id := first; a.taken != nil && id < first+n; id++ {
		if a.taken(id) {
			return true
		}
	}
	return false
}

// draw takes n ids from the reserved blocks. If there are not enough, it returns a
// channel that is closed when the next block may have been reserved.
func (a *Allocator) draw(n int64) (int64, <-chan struct{}, error) {
	l := a.limits().complete()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, nil, ErrClosed
	}
	a.blocks = slices.DeleteFunc(a.blocks, func(b block) bool { // reserved before the limits changed
		return b.next < l.First || b.end > l.Max+1
	})
	a.prefetch()
	for len(a.blocks) > 0 && a.blocks[0].end-a.blocks[0].next < n {
		a.blocks = a.blocks[1:] // too short: the rest is skipped
		a.prefetch()
	}
	if len(a.blocks) == 0 {
		return 0, a.arrived, nil
	}
	b := &a.blocks[0]
	id := b.next
	if b.next += n; b.next == b.end {
		a.blocks = a.blocks[1:]
	}
	return id, nil, nil
}

// prefetch starts to reserve a block when less than half a block is left. The
// caller holds the lock.
func (a *Allocator) prefetch() {
	var left int64
	for _, b := range a.blocks {
		left += b.end - b.next
	}
	if a.fetching || left > a.size/2 {
		return
	}
	a.fetching, a.failed = true, nil
	go func() {
		ctx, cancel := context.WithTimeout(a.base, 10*time.Second)
		defer cancel()
		b, err := a.reserve(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.fetching, a.failed = false, err; err == nil {
			a.blocks = append(a.blocks, b)
		}
		close(a.arrived)
		a.arrived = make(chan struct{})
	}()
}

// lastError returns why no block could be reserved; nil if there is one.
func (a *Allocator) lastError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blocks) > 0 {
		return nil
	}
	return a.failed
}

// reserve takes the next block from the store. It tries again after conflicts.
func (a *Allocator) reserve(ctx context.Context) (block, error) {
	for {
		stored, version, err := a.store.Load(ctx)
		if err != nil {
			return block{}, fmt.Errorf("reading the next job id: %w", err)
		}
		b, wrapped := a.cut(stored)
		err = a.store.Swap(ctx, b.end, version)
		switch {
		case err == nil:
			a.reserved(wrapped)
			return b, nil
		case !errors.Is(err, ErrConflict):
			return block{}, fmt.Errorf("reserving job ids: %w", err)
		case ctx.Err() != nil:
			return block{}, fmt.Errorf("reserving job ids: %w", ctx.Err())
		}
	}
}

// cut returns the block to reserve when stored is the first free id.
func (a *Allocator) cut(stored int64) (b block, wrapped bool) {
	l := a.limits().complete()
	a.mu.Lock()
	floor := a.floor
	a.mu.Unlock()
	next := max(stored, floor, l.First)
	if next > l.Max {
		next, wrapped = l.First, true
	}
	return block{next: next, end: min(next+a.size, l.Max+1)}, wrapped
}

// reserved notes that a block was reserved.
func (a *Allocator) reserved(wrapped bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wrapped {
		a.floor = 0
	}
}

// Close ends the assignment and returns the rest of the last block to the store, unless
// another block has been reserved since. Next returns ErrClosed from then on.
func (a *Allocator) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	a.cancel()
	wait, fetching := a.arrived, a.fetching
	a.mu.Unlock()
	if fetching {
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("returning unused job ids: %w", ctx.Err())
		}
	}
	next, end := a.rest()
	if next == end {
		return nil
	}
	stored, version, err := a.store.Load(ctx)
	if err != nil || stored != end {
		return err
	}
	if err := a.store.Swap(ctx, next, version); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("returning unused job ids: %w", err)
	}
	return nil
}

// rest returns the reserved ids up to the highest that were not assigned.
func (a *Allocator) rest() (next, end int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blocks) == 0 {
		return 0, 0
	}
	last := a.blocks[len(a.blocks)-1]
	next, end = last.next, last.end
	for i := len(a.blocks) - 2; i >= 0 && a.blocks[i].end == next; i-- {
		next = a.blocks[i].next
	}
	a.blocks = nil
	return next, end
}

// Peek returns the id that is assigned next if none is skipped; 0: none is
// reserved.
func (a *Allocator) Peek() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blocks) == 0 {
		return 0
	}
	return a.blocks[0].next
}
