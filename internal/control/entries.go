package control

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// entries are the objects that have one index key, by storeID. Most keys have one
// object, for which a map would take several times the memory. The zero value has none.
type entries[T any] struct {
	id   types.UID // of the only object; "": there is none, or there are several
	only T
	more map[types.UID]T // nil: there is at most one object
}

// with returns e with the object of that id added or replaced. It may change e.
func (e entries[T]) with(id types.UID, obj T) entries[T] {
	switch {
	case e.more != nil:
		e.more[id] = obj
	case e.id == "" || e.id == id:
		e.id, e.only = id, obj
	default:
		e = entries[T]{more: map[types.UID]T{e.id: e.only, id: obj}}
	}
	return e
}

// without returns e without the object of that id. It may change e.
func (e entries[T]) without(id types.UID) entries[T] {
	if e.id == id {
		return entries[T]{}
	}
	delete(e.more, id)
	return e
}

func (e entries[T]) len() int {
	if e.id != "" {
		return 1
	}
	return len(e.more)
}

// all yields the objects, in no order.
func (e entries[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		if e.id != "" {
			yield(e.only)
			return
		}
		for _, obj := range e.more {
			if !yield(obj) {
				return
			}
		}
	}
}
