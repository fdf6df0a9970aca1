package status

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write fields.go anew")

// TestFieldsAreThoseOfJob holds fields.go to the type Job, or writes it.
func TestFieldsAreThoseOfJob(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("package status\n\n// Written by go test ./translate/status -run FieldsAreThoseOfJob -update; do not edit.\n\n")
	b.WriteString("// Fields are the fields of a Job by their JSON names, in its order.\nvar Fields = []Field{\n")
	typ := reflect.TypeFor[Job]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := map[reflect.Kind]string{reflect.String: "Text", reflect.Bool: "Flag", reflect.Int32: "Small", reflect.Int64: "Large"}[f.Type.Kind()]
		if kind == "" {
			t.Fatalf("%s is neither a string, a bool, an int32 nor an int64", f.Name)
		}
		fmt.Fprintf(&b, "{Name: %q, Omit: %v, %s: func(j *Job) *%s { return &j.%s }},\n", name, opts == "omitempty", kind, f.Type, f.Name)
	}
	b.WriteString("}\n")
	want, err := format.Source(bytes.ReplaceAll(b.Bytes(), []byte(" Omit: false,"), nil))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("fields.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("fields.go")
	if err != nil || !bytes.Equal(have, want) {
		t.Error("fields.go is not what it should be: run this test with -update")
	}
}
