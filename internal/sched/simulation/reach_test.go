package simulation

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// reach is what can be reached from a value: how many bytes, and how many elements are in
// maps, slices and channels, by the field that has them.
type reach struct {
	bytes    int64
	elements map[string]int

	seen map[place]bool
	todo []found
}

// place distinguishes a struct from its first field at the same address.
type place struct {
	at   unsafe.Pointer
	kind reflect.Type
}

type found struct {
	value reflect.Value
	field string // that has it
}

// bounded are the fields whose maps may grow to a fixed size, and that size. Their bytes do
// not count.
var bounded = map[string]int{
	"control.sharedStrings.known": 4096,
	"control.Store.deleted":       4000, // of all stores
}

// measure returns what can be reached from the values, without what belongs to the
// simulation itself. What functions have captured is not seen.
func measure(values ...any) *reach {
	r := &reach{elements: map[string]int{}, seen: map[place]bool{}}
	for _, v := range values {
		r.todo = append(r.todo, found{reflect.ValueOf(v), reflect.TypeOf(v).String()})
	}
	for len(r.todo) > 0 {
		f := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		r.visit(f.value, f.field)
	}
	return r
}

// later visits a value after the present one, unless it cannot lead anywhere.
func (r *reach) later(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.String, reflect.Struct, reflect.Array,
		reflect.Chan:
		r.todo = append(r.todo, found{v, field})
	}
}

// isNew reports whether nothing has been found there before.
func (r *reach) isNew(at unsafe.Pointer, kind reflect.Type) bool {
	p := place{at, kind}
	if at == nil || r.seen[p] {
		return false
	}
	r.seen[p] = true
	return true
}

// isModel reports whether a type belongs to the simulation or the test.
func isModel(t reflect.Type) bool {
	return strings.HasSuffix(t.PkgPath(), "sched/simulation") || t.PkgPath() == "testing"
}

func (r *reach) visit(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		if isModel(v.Type().Elem()) || !r.isNew(v.UnsafePointer(), v.Type()) {
			return
		}
		r.bytes += int64(v.Type().Elem().Size())
		r.later(v.Elem(), field)
	case reflect.Interface:
		if !v.IsNil() {
			r.later(v.Elem(), field)
		}
	case reflect.Map:
		r.visitMap(v, field)
	case reflect.Slice:
		r.visitSlice(v, field)
	case reflect.String:
		if s := v.String(); r.isNew(unsafe.Pointer(unsafe.StringData(s)), v.Type()) {
			r.bytes += int64(len(s))
		}
	case reflect.Chan:
		r.elements[field] += v.Len()
	case reflect.Array:
		for i := range v.Len() {
			r.later(v.Index(i), field)
		}
	case reflect.Struct:
		r.visitStruct(v, field)
	}
}

func (r *reach) visitMap(v reflect.Value, field string) {
	if !r.isNew(v.UnsafePointer(), v.Type()) {
		return
	}
	r.elements[field] += v.Len()
	if bounded[field] > 0 {
		return
	}
	r.bytes += int64(v.Len()) * int64(v.Type().Key().Size()+v.Type().Elem().Size())
	for i := v.MapRange(); i.Next(); {
		r.later(i.Key(), field)
		r.later(i.Value(), field)
	}
}

func (r *reach) visitSlice(v reflect.Value, field string) {
	if !r.isNew(v.UnsafePointer(), v.Type()) {
		return
	}
	r.elements[field] += v.Len()
	r.bytes += int64(v.Cap()) * int64(v.Type().Elem().Size())
	for i := range v.Len() {
		r.later(v.Index(i), field)
	}
}

func (r *reach) visitStruct(v reflect.Value, field string) {
	if isModel(v.Type()) {
		return
	}
	if v.Type() == reflect.TypeFor[sync.Map]() && v.CanAddr() {
		m := (*sync.Map)(v.Addr().UnsafePointer())
		m.Range(func(key, value any) bool {
			r.elements[field]++
			r.later(reflect.ValueOf(key), field)
			r.later(reflect.ValueOf(value), field)
			return true
		})
		return
	}
	if strings.HasPrefix(v.Type().String(), "atomic.Pointer[") {
		// Its first field, of no size, is an array of the pointer's type.
		kind := v.Type().Field(0).Type.Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.UnsafePointer && !f.IsNil() {
				r.later(reflect.NewAt(kind.Elem(), f.UnsafePointer()), field)
			}
		}
		return
	}
	for i := range v.NumField() {
		r.later(v.Field(i), fieldName(v.Type(), i, field))
	}
}

// fieldName returns the name of a field of Berth's own types. What other types have counts for
// the field that has them.
func fieldName(t reflect.Type, i int, within string) string {
	if !strings.Contains(t.PkgPath(), "berth/internal/") {
		return within
	}
	name, _, _ := strings.Cut(t.String(), "[") // without the arguments of a generic type
	return name + "." + t.Field(i).Name
}

// growth lists the fields with at least that many more elements than before, or more than
// they may have.
func (r *reach) growth(before *reach, least int) (all []string) {
	for name, n := range r.elements {
		if most := bounded[name]; most > 0 && n > most || most == 0 && n-before.elements[name] >= least {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func TestReach(t *testing.T) {
	type inner struct{ names map[string][]int }
	type outer struct {
		in    *inner
		again *inner
		any   any
	}
	in := &inner{names: map[string][]int{"a": {1, 2, 3}}}
	v := &struct{ outer }{outer{in: in, again: in, any: []string{"x"}}}
	// A type of this package is not counted, one without a name is.
	if r := measure(v); r.bytes == 0 || len(r.elements) != 0 {
		t.Errorf("%d bytes, elements %v", r.bytes, r.elements)
	}
	a, b := measure(map[string][]int{"a": {1, 2}}), measure(map[string][]int{"a": {1, 2, 3}, "b": {1}})
	if got := b.growth(a, 1); b.bytes <= a.bytes || len(got) != 1 || b.elements[got[0]] != 6 || a.elements[got[0]] != 3 {
		t.Errorf("%d and %d bytes, %v and %v, growth %v", a.bytes, b.bytes, a.elements, b.elements, got)
	}
	var m sync.Map
	m.Store("k", "v")
	if r := measure(&m); r.elements["*sync.Map"] != 1 {
		t.Errorf("%v", r.elements)
	}
}
