package ids_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/ids"
)

// memory is a Store in memory.
type memory struct {
	mu      sync.Mutex
	next    int64
	version int
	err     error
}

func (m *memory) Load(context.Context) (int64, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next, strconv.Itoa(m.version), m.err
}

func (m *memory) Swap(_ context.Context, next int64, version string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil:
		return m.err
	case version != strconv.Itoa(m.version):
		return ids.ErrConflict
	}
	m.next = next
	m.version++
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// A federation's ids have the number of the cluster above the lower 26 bits, which the limits of
// the cluster are about. Ids that were reserved before the cluster joined are not assigned.
func TestFederation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   ids.Limits
		id   int32
		want ids.Limits
	}{
		{ids.Limits{}, 1, ids.Limits{First: 67108865, Max: 134217727}},
		{ids.Limits{First: 1000, Max: 2000}, 2, ids.Limits{First: 134218728, Max: 134219728}},
		{ids.Limits{First: 1, Max: 1<<31 - 1}, 31, ids.Limits{First: 2080374785, Max: 1<<31 - 1}},
		{ids.Limits{First: 134218728}, 2, ids.Limits{First: 134218728, Max: 201326591}},
	} {
		if got := c.in.OfMember(c.id); got != c.want {
			t.Errorf("%+v of member %d: %+v, want %+v", c.in, c.id, got, c.want)
		}
	}
	var current atomic.Pointer[ids.Limits]
	current.Store(&ids.Limits{})
	a := ids.New(&memory{}, 10, func() ids.Limits { return *current.Load() }, nil)
	if err := a.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	expect := func(want int64) {
		t.Helper()
		if got, err := a.Next(t.Context()); err != nil || got != want {
			t.Errorf("id %d, %v; want %d", got, err, want)
		}
	}
	expect(1)
	member := ids.Limits{}.OfMember(3)
	current.Store(&member)
	expect(201326593)
	expect(201326594)
}

func limits(l ids.Limits) func() ids.Limits { return func() ids.Limits { return l } }

func start(t testing.TB, s ids.Store, size int64, l ids.Limits, highest int64, taken func(int64) bool) *ids.Allocator {
	t.Helper()
	a := ids.New(s, size, limits(l), taken)
	if err := a.Start(t.Context(), highest); err != nil {
		t.Fatal(err)
	}
	return a
}

func next(t testing.TB, a *ids.Allocator) int64 {
	t.Helper()
	id, err := a.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Two leaders for a moment, eight submitters each: never the same id, and to
// each submitter its ids grow.
func TestIDsAreUniqueAndIncreasing(t *testing.T) {
	store := &memory{}
	const submitters, jobs = 8, 500
	lists := make([][]int64, 2*submitters)
	var wg sync.WaitGroup
	for leader := range 2 {
		a := start(t, store, 7, ids.Limits{First: 1001}, 0, nil)
		for s := range submitters {
			wg.Go(func() {
				for range jobs {
					id, err := a.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					lists[leader*submitters+s] = append(lists[leader*submitters+s], id)
				}
			})
		}
	}
	wg.Wait()
	var all []int64
	for _, l := range lists {
		if !slices.IsSorted(l) {
			t.Errorf("a submitter's ids do not grow: %v", l[:20])
		}
		all = append(all, l...)
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != 2*submitters*jobs || all[0] < 1001 {
		t.Errorf("%d different ids of %d, lowest %d", n, 2*submitters*jobs, all[0])
	}
}

func TestIDsIncreaseWithinOneProcess(t *testing.T) {
	a := start(t, &memory{}, 10, ids.Limits{First: 5}, 0, nil)
	for want := int64(5); want < 500; want++ {
		if got := next(t, a); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func TestCrashSkipsTheRestOfABlock(t *testing.T) {
	store := &memory{}
	first := next(t, start(t, store, 100, ids.Limits{}, 0, nil))
	if again := next(t, start(t, store, 100, ids.Limits{}, 0, nil)); again <= first {
		t.Errorf("%d after %d", again, first)
	}
}

func TestCloseGivesReservedIDsBack(t *testing.T) {
	store := &memory{}
	a := start(t, store, 100, ids.Limits{}, 0, nil)
	last := next(t, a)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Next(t.Context()); !errors.Is(err, ids.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := next(t, start(t, store, 100, ids.Limits{}, 0, nil)); got != last+1 {
		t.Errorf("after an orderly end: %d, want %d", got, last+1)
	}
}

func TestCloseLeavesTheNextLeaderAlone(t *testing.T) {
	store := &memory{}
	old := start(t, store, 100, ids.Limits{}, 0, nil)
	a := start(t, store, 100, ids.Limits{}, 0, nil)
	if err := old.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := start(t, store, 100, ids.Limits{}, 0, nil)
	if x, y := next(t, a), next(t, b); y <= x || y-x < 100 {
		t.Errorf("%d and then %d: the blocks overlap", x, y)
	}
}

func TestStartIsAboveTheHighestExistingID(t *testing.T) {
	if got := next(t, start(t, &memory{next: 10}, 100, ids.Limits{}, 4711, nil)); got != 4712 {
		t.Errorf("got %d", got)
	}
}

func TestIDsStartAgainAndSkipThoseInUse(t *testing.T) {
	taken := func(id int64) bool { return id == 10 || id == 11 }
	a := start(t, &memory{next: 18}, 5, ids.Limits{First: 10, Max: 19}, 0, taken)
	var got []int64
	for range 4 {
		got = append(got, next(t, a))
	}
	if want := []int64{18, 19, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFailingStore(t *testing.T) {
	store := &memory{}
	a := start(t, store, 2, ids.Limits{}, 0, nil)
	broken := errors.New("broken")
	store.fail(broken)
	var err error
	for range 5 { // what is left of the blocks, then the error
		if _, err = a.Next(t.Context()); err != nil {
			break
		}
	}
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	store.fail(nil)
	// One more caller may get the error of a fetch that has just failed.
	eventually.Succeeds(t, "the store works again", func() error { _, err := a.Next(t.Context()); return err })
	store.fail(broken)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_, err = a.Next(ctx)
	}
	if err == nil {
		t.Error("got an id from a store that fails")
	}
}

func TestConfigMap(t *testing.T) {
	store := &ids.ConfigMap{Client: fake.Cluster(interceptor.Funcs{}).Client, Namespace: "berth-system", Name: "job-ids"}
	ctx := t.Context()
	if n, v, err := store.Load(ctx); n != 0 || v != "" || err != nil {
		t.Fatal(n, v, err)
	}
	if err := store.Swap(ctx, 101, ""); err != nil {
		t.Fatal(err)
	}
	if err := store.Swap(ctx, 101, ""); !errors.Is(err, ids.ErrConflict) {
		t.Errorf("second creation: %v", err)
	}
	n, v, err := store.Load(ctx)
	if n != 101 || err != nil {
		t.Fatal(n, err)
	}
	if err := store.Swap(ctx, 201, v); err != nil {
		t.Fatal(err)
	}
	if err := store.Swap(ctx, 201, v); !errors.Is(err, ids.ErrConflict) {
		t.Errorf("an old version: %v", err)
	}
}

func BenchmarkNext(b *testing.B) {
	a := start(b, &memory{}, ids.DefaultBlock, ids.Limits{}, 0, nil)
	for b.Loop() {
		next(b, a)
	}
}
