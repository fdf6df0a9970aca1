package jobs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Each field of the clients' types is a field of the API's types, under the same
// JSON name and with the same JSON type.
func TestObjectsHaveTheFieldsOfTheAPI(t *testing.T) {
	compareFields(t, "BatchJob", reflect.TypeFor[batchJob](), reflect.TypeFor[v1alpha1.BatchJob]())
	compareFields(t, "User", reflect.TypeFor[user](), reflect.TypeFor[v1alpha1.User]())
}

func compareFields(t *testing.T, path string, ours, api reflect.Type) {
	t.Helper()
	fields := jsonFields(api)
	for name, field := range jsonFields(ours) {
		path := path + "." + name
		other, ok := fields[name]
		if !ok {
			t.Errorf("%s is not a field of the API", path)
			continue
		}
		ours, api := dereference(field), dereference(other)
		switch {
		case ours == api:
		case ours.Kind() == reflect.Struct && api.Kind() == reflect.Struct:
			compareFields(t, path, ours, api)
		case ours.Kind() == reflect.String && strings.HasSuffix(api.Name(), "Time"): // RFC 3339 in JSON
		case ours.Kind() != api.Kind():
			t.Errorf("%s is a %s; in the API it is a %s", path, ours, api)
		}
	}
}

// jsonFields returns the types of a struct's fields by JSON name, those of inlined
// structs included.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && options == "inline":
			for name, field := range jsonFields(f.Type) {
				out[name] = field
			}
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

func dereference(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
