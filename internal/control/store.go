package control

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store has the newest known version of every object of one type. It is filled by a
// watch and by the results of the process's own writes, whichever is newer, so that
// readers never see a state older than this process's writes. Its objects are shared:
// nobody may change them. Safe for concurrent use.
type Store[T client.Object] struct {
	keys      []func(T) string   // index keys; "" leaves the object out of that index
	multiKeys []func(T) []string // indexes with several keys for one object

	mu          sync.RWMutex
	byUID       map[types.UID]T // by storeID
	index       map[string]entries[T]
	deleted     map[types.UID]time.Time // recently deleted: a late write must not revive
	unconfirmed map[types.UID]bool      // of ApplyRead, and the watch has not delivered them
	subscribers []func(old, now T)
	amend       func(T) T // nil: objects are stored as they are

	version  uint64        // the highest resource version of any object applied or removed
	advanced chan struct{} // closed when version increases; nil: nobody waits
}

// deletedTTL is how long the UID of a deleted object is kept.
const deletedTTL = 10 * time.Minute

// NewStore returns an empty store with an index by each of keys. All indexes share one set
// of keys, so the keys of two of them must differ.
func NewStore[T client.Object](keys ...func(T) string) *Store[T] {
	return &Store[T]{
		keys:    keys,
		byUID:   map[types.UID]T{},
		index:   map[string]entries[T]{},
		deleted: map[types.UID]time.Time{}, unconfirmed: map[types.UID]bool{},
	}
}

// storeID returns the object's UID. An object that is not in the API server yet has
// none; its namespace and name are used instead.
func storeID(o client.Object) types.UID {
	if uid := o.GetUID(); uid != "" {
		return uid
	}
	return nameID(o)
}

func nameID(o client.Object) types.UID { return types.UID(o.GetNamespace() + "/" + o.GetName()) }

// IndexMany adds an index with several keys for each object. The keys must differ from
// those of the other indexes. Call it before the store is filled.
func (s *Store[T]) IndexMany(keys func(T) []string) { s.multiKeys = append(s.multiKeys, keys) }

// Subscribe registers fn to be called after every change, in the goroutine that made
// it: old is the zero T for a new object, now for a deleted one. fn must return
// quickly. Call Subscribe before the store is filled.
func (s *Store[T]) Subscribe(fn func(old, now T)) { s.subscribers = append(s.subscribers, fn) }

// Apply stores obj unless the store has a newer version or its deletion.
func (s *Store[T]) Apply(obj T) { s.apply(obj, false) }

// ApplyRead is Apply for an object that was read from the API server because the watch may be
// late. It is unconfirmed until the watch delivers it. If it is deleted before, and the watch
// has to begin again with a list, no event reports its deletion: the caller of ApplyRead has to
// read again.
func (s *Store[T]) ApplyRead(obj T) { s.apply(obj, true) }

// AnyUnconfirmed reports whether one of the objects is unconfirmed.
func (s *Store[T]) AnyUnconfirmed(list []T) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.unconfirmed) > 0 && slices.ContainsFunc(list, func(o T) bool { return s.unconfirmed[storeID(o)] })
}

// apply is Apply, or ApplyRead if read is true.
func (s *Store[T]) apply(obj T, read bool) {
	s.mu.Lock()
	if !read {
		delete(s.unconfirmed, storeID(obj))
	}
	if !s.isNewer(obj) {
		s.mu.Unlock()
		return
	}
	if _, known := s.byUID[storeID(obj)]; read && !known {
		s.unconfirmed[storeID(obj)] = true
	}
	old, known := s.byUID[storeID(obj)]
	if s.amend != nil {
		obj = s.amend(obj)
	}
	s.put(old, known, obj)
	s.mu.Unlock()
	s.notify(old, obj)
}

// Amend sets a function by which each object is replaced before it is stored: by a copy with
// more than the API server knows, or by itself. It may be called with its own result. It must not
// use the store. Call Amend before the store is filled.
func (s *Store[T]) Amend(fn func(T) T) { s.amend = fn }

// Refresh stores the objects with the index key as Amend's function changes them now.
func (s *Store[T]) Refresh(key string) {
	for _, o := range s.ByIndex(key) {
		s.mu.Lock()
		old, known := s.byUID[storeID(o)]
		if !known {
			s.mu.Unlock()
			continue
		}
		now := s.amend(old)
		if any(now) == any(old) {
			s.mu.Unlock()
			continue
		}
		s.put(old, true, now)
		s.mu.Unlock()
		s.notify(old, now)
	}
}

// isNewer records the version of obj and reports whether obj is to be stored: it is
// neither deleted nor as old as the stored one. The store is locked.
func (s *Store[T]) isNewer(obj T) bool {
	s.noteVersion(obj)
	id := storeID(obj)
	if _, gone := s.deleted[id]; gone {
		return false
	}
	old, known := s.byUID[id]
	return !known || newer(obj, old)
}

// put stores obj in place of old, if that is known. The store is locked.
func (s *Store[T]) put(old T, known bool, obj T) {
	if known {
		s.unindex(old)
		if storeID(old) != storeID(obj) {
			delete(s.byUID, storeID(old))
		}
	}
	id := storeID(obj)
	s.byUID[id] = obj
	s.eachKey(obj, func(k string) { s.index[k] = s.index[k].with(id, obj) })
}

// Remove removes the object permanently: no Apply restores it in the next deletedTTL. now
// is the time of the removal.
func (s *Store[T]) Remove(obj T, now time.Time) {
	s.mu.Lock()
	old, known := s.remove(obj, now)
	s.mu.Unlock()
	if known {
		var none T
		s.notify(old, none)
	}
}

// remove is Remove without the notification. The store is locked.
func (s *Store[T]) remove(obj T, now time.Time) (old T, known bool) {
	s.noteVersion(obj)
	id := storeID(obj)
	s.deleted[id] = now
	delete(s.unconfirmed, id)
	// Several calls share the work of forgetting old deletions: each stops at the first
	// one that is recent.
	for uid, at := range s.deleted {
		if len(s.deleted) < 1000 || now.Sub(at) < deletedTTL {
			break
		}
		delete(s.deleted, uid)
	}
	if old, known = s.byUID[id]; known {
		delete(s.byUID, id)
		s.unindex(old)
	}
	return old, known
}

// noteVersion raises the store's version to that of obj. The store is locked.
func (s *Store[T]) noteVersion(obj client.Object) {
	v, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil || v <= s.version {
		return
	}
	s.version = v
	if s.advanced != nil {
		close(s.advanced)
		s.advanced = nil
	}
}

// Version returns the highest resource version that has reached the store. A process
// that waits until its store has reached the version of another process sees at least
// what that one sees.
func (s *Store[T]) Version() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Await waits until the store has reached version. The error is that of ctx, if it ends
// before.
func (s *Store[T]) Await(ctx context.Context, version uint64) error {
	for {
		s.mu.Lock()
		if s.version >= version {
			s.mu.Unlock()
			return nil
		}
		if s.advanced == nil {
			s.advanced = make(chan struct{})
		}
		advanced := s.advanced
		s.mu.Unlock()
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store[T]) unindex(obj T) {
	id := storeID(obj)
	s.eachKey(obj, func(k string) {
		if rest := s.index[k].without(id); rest.len() > 0 {
			s.index[k] = rest
		} else {
			delete(s.index, k)
		}
	})
}

// eachKey calls fn with every index key of obj.
func (s *Store[T]) eachKey(obj T, fn func(string)) {
	for _, key := range s.keys {
		if k := key(obj); k != "" {
			fn(k)
		}
	}
	for _, keys := range s.multiKeys {
		for _, k := range keys(obj) {
			fn(k)
		}
	}
}

func (s *Store[T]) notify(old, now T) {
	for _, fn := range s.subscribers {
		fn(old, now)
	}
}

// Get returns the object with that index key: any one, if several have it. ok is false if
// there is none.
func (s *Store[T]) Get(key string) (obj T, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for o := range s.index[key].all() {
		return o, true
	}
	return obj, false
}

// ByUID returns the object with that UID; ok is false if there is none.
func (s *Store[T]) ByUID(uid types.UID) (obj T, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj, ok = s.byUID[uid]
	return obj, ok
}

// ByIndex returns the objects with that index key, in no order.
func (s *Store[T]) ByIndex(key string) []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := s.index[key]
	out := make([]T, 0, found.len())
	for o := range found.all() {
		out = append(out, o)
	}
	return out
}

// Any reports whether fn is true for an object with that index key. fn must not
// use the store.
func (s *Store[T]) Any(key string, fn func(T) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for o := range s.index[key].all() {
		if fn(o) {
			return true
		}
	}
	return false
}

// List returns every object, in no order.
func (s *Store[T]) List() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]T, 0, len(s.byUID))
	for _, o := range s.byUID {
		out = append(out, o)
	}
	return out
}

// Len returns the number of objects.
func (s *Store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byUID)
}

// newer reports whether a has a higher resource version than b. Resource versions
// are comparable decimal numbers within one resource type.
func newer(a, b client.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX != nil || errY != nil || x > y
}
