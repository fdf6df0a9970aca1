package agentapi

import (
	"sync"
	"time"
)

// recent is a map that drops what has not been used for one to two lives, and before that
// if it has more than 2*most entries. Safe for concurrent use.
type recent[K comparable, V any] struct {
	life time.Duration
	most int
	now  func() time.Time

	mu         sync.Mutex
	since      time.Time // when young was made
	young, old map[K]V
}

func newRecent[K comparable, V any](life time.Duration, most int, now func() time.Time) *recent[K, V] {
	return &recent[K, V]{life: life, most: most, now: now, since: now(), young: map[K]V{}}
}

// get returns the value of a key.
func (r *recent[K, V]) get(key K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(key)
}

// getOrAdd returns the value of a key, which is that of create if there is none.
func (r *recent[K, V]) getOrAdd(key K, create func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.find(key)
	if !ok {
		v = create()
		r.young[key] = v
	}
	return v
}

func (r *recent[K, V]) add(key K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age()
	r.young[key] = v
}

func (r *recent[K, V]) remove(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, key)
	delete(r.old, key)
}

func (r *recent[K, V]) find(key K) (v V, ok bool) {
	r.age()
	if v, ok = r.young[key]; ok {
		return v, true
	}
	if v, ok = r.old[key]; ok {
		r.young[key] = v
	}
	return v, ok
}

// age drops old entries. If the clock was set back, all entries are of now.
func (r *recent[K, V]) age() {
	now := r.now()
	age := now.Sub(r.since)
	switch {
	case age < 0:
		r.since = now
	case age >= 2*r.life:
		r.since, r.young, r.old = now, map[K]V{}, nil
	case age >= r.life || len(r.young) >= r.most:
		r.since, r.young, r.old = now, map[K]V{}, r.young
	}
}
