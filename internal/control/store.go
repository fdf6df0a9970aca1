package control

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store holds the newest version known of every object of one type. It is fed
// by a watch and by the results of the process's own writes, whichever is
// newer, so a reader never sees a state older than what this process wrote.
// Objects in it are shared: nobody may change them. Safe for concurrent use.
type Store[T client.Object] struct {
	keys []func(T) string   // index keys; "" leaves the object out of that index
	many []func(T) []string // several index keys of one object

	mu    sync.RWMutex
	byUID map[types.UID]T
	index map[string]map[types.UID]T
	dead  map[types.UID]time.Time // deleted lately: a late write must not revive
	subs  []func(old, now T)
	keep  func(old, now T) T // see Inherit

	expected func(T) types.UID // see Expect

	version uint64        // the highest that any object came with
	grown   chan struct{} // closed when version grows; nil: nobody waits
}

// deadFor is how long a deleted object's UID is remembered.
const deadFor = 10 * time.Minute

// NewStore makes a store indexed by keys, whose values must differ.
func NewStore[T client.Object](keys ...func(T) string) *Store[T] {
	return &Store[T]{
		keys:  keys,
		byUID: map[types.UID]T{},
		index: map[string]map[types.UID]T{},
		dead:  map[types.UID]time.Time{},
	}
}

// IndexMany adds an index by several keys of each object, whose values must
// differ from those of the other indexes. Call it before the store is fed.
func (s *Store[T]) IndexMany(keys func(T) []string) { s.many = append(s.many, keys) }

// Subscribe has fn called after every change, in the goroutine that made it:
// old is the zero T for a new object, now for a deleted one. fn must return
// quickly. Call it before the store is fed.
func (s *Store[T]) Subscribe(fn func(old, now T)) { s.subs = append(s.subs, fn) }

// Inherit has fn see every newer version of an object that the store holds: what
// it returns, obj or a copy of it, is taken in. Call it before the store is fed.
func (s *Store[T]) Inherit(fn func(old, obj T) T) { s.keep = fn }

// Expect has an object that the store does not know take the place of the one
// with the UID that uid says, if there is one: it was taken in before it existed.
// Call it before the store is fed.
func (s *Store[T]) Expect(uid func(obj T) types.UID) { s.expected = uid }

// Apply takes in obj unless the store knows a newer version or its deletion.
func (s *Store[T]) Apply(obj T) {
	s.mu.Lock()
	s.reach(obj)
	uid := obj.GetUID()
	old, known := s.byUID[uid]
	_, gone := s.dead[uid]
	if gone || known && !newer(obj, old) {
		s.mu.Unlock()
		return
	}
	if !known && s.expected != nil {
		if old, known = s.byUID[s.expected(obj)]; known {
			delete(s.byUID, old.GetUID())
		}
	}
	if known && s.keep != nil {
		obj = s.keep(old, obj)
	}
	s.put(old, known, obj)
	s.mu.Unlock()
	s.tellOf(old, known, obj)
}

// tellOf tells of obj in old's place. Under another key it is another object.
func (s *Store[T]) tellOf(old T, known bool, obj T) {
	var none T
	if known && len(s.keys) > 0 && s.keys[0](old) != s.keys[0](obj) && old.GetUID() != obj.GetUID() {
		s.tell(old, none)
		old = none
	}
	s.tell(old, obj)
}

// Swap has now, another object of the same version, take the place of old, if
// that is still what the store holds.
func (s *Store[T]) Swap(old, now T) bool {
	s.mu.Lock()
	have, known := s.byUID[old.GetUID()]
	if !known || client.Object(have) != client.Object(old) {
		s.mu.Unlock()
		return false
	}
	s.put(old, true, now)
	s.mu.Unlock()
	s.tell(old, now)
	return true
}

// put has obj take the place of old, if that is known. The store is locked.
func (s *Store[T]) put(old T, known bool, obj T) {
	if known {
		s.unindex(old)
	}
	uid := obj.GetUID()
	s.byUID[uid] = obj
	s.eachKey(obj, func(k string) {
		if s.index[k] == nil {
			s.index[k] = map[types.UID]T{}
		}
		s.index[k][uid] = obj
	})
}

// Amend has another object of the same version take an object's place: what
// change makes of it, which must be a copy. It does nothing if there is none.
func (s *Store[T]) Amend(uid types.UID, change func(T) T) {
	s.mu.Lock()
	old, known := s.byUID[uid]
	if !known {
		s.mu.Unlock()
		return
	}
	obj := change(old)
	s.put(old, true, obj)
	s.mu.Unlock()
	s.tell(old, obj)
}

// Remove takes the object out for good.
func (s *Store[T]) Remove(obj T, now time.Time) {
	s.mu.Lock()
	s.reach(obj)
	uid := obj.GetUID()
	s.dead[uid] = now
	for u, at := range s.dead {
		if len(s.dead) < 1000 || now.Sub(at) < deadFor {
			break
		}
		delete(s.dead, u)
	}
	old, known := s.byUID[uid]
	if known {
		delete(s.byUID, uid)
		s.unindex(old)
	}
	s.mu.Unlock()
	if known {
		var none T
		s.tell(old, none)
	}
}

// reach notes how far the store has come. The store is locked.
func (s *Store[T]) reach(obj client.Object) {
	v, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil || v <= s.version {
		return
	}
	s.version = v
	if s.grown != nil {
		close(s.grown)
		s.grown = nil
	}
}

// Version is the highest resource version that the store was told of: one
// process that waits until its store has come as far as another's sees at
// least what that one sees.
func (s *Store[T]) Version() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Await returns when the store has come as far as version; the error is ctx's.
func (s *Store[T]) Await(ctx context.Context, version uint64) error {
	for {
		s.mu.Lock()
		if s.version >= version {
			s.mu.Unlock()
			return nil
		}
		if s.grown == nil {
			s.grown = make(chan struct{})
		}
		grown := s.grown
		s.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store[T]) unindex(obj T) {
	s.eachKey(obj, func(k string) {
		if m := s.index[k]; m != nil {
			if delete(m, obj.GetUID()); len(m) == 0 {
				delete(s.index, k)
			}
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
	for _, keys := range s.many {
		for _, k := range keys(obj) {
			fn(k)
		}
	}
}

func (s *Store[T]) tell(old, now T) {
	for _, fn := range s.subs {
		fn(old, now)
	}
}

// Get returns the object with that index key (any one, if several have it).
func (s *Store[T]) Get(key string) (obj T, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, o := range s.index[key] {
		return o, true
	}
	return obj, false
}

// ByUID returns the object with that UID.
func (s *Store[T]) ByUID(uid types.UID) (obj T, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj, ok = s.byUID[uid]
	return obj, ok
}

// Having lists the objects with that index key, in no order.
func (s *Store[T]) Having(key string) []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]T, 0, len(s.index[key]))
	for _, o := range s.index[key] {
		out = append(out, o)
	}
	return out
}

// Any tells whether fn says yes to an object with that index key. fn must not use
// the store.
func (s *Store[T]) Any(key string, fn func(T) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, o := range s.index[key] {
		if fn(o) {
			return true
		}
	}
	return false
}

// List lists every object, in no order.
func (s *Store[T]) List() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]T, 0, len(s.byUID))
	for _, o := range s.byUID {
		out = append(out, o)
	}
	return out
}

// Len is the number of objects.
func (s *Store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byUID)
}

// newer compares resource versions, which are comparable decimal numbers
// within one resource type.
func newer(a, b client.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX != nil || errY != nil || x > y
}
