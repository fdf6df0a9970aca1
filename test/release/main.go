// Command release reads a configuration of goreleaser's as goreleaser itself
// does, strictly, and looks at what its schema says of members: none that is
// unknown or deprecated, no value that is none of those that it takes. It is
// much of "goreleaser check", and takes seconds to compile, where that takes
// minutes.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release goreleaser.yaml")
		os.Exit(2)
	}
	p, err := config.Load(os.Args[1])
	if err == nil && p.Version != 2 {
		err = fmt.Errorf("version %d, want 2", p.Version)
	}
	if err == nil {
		err = look("", reflect.ValueOf(p))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release: error:", err)
		os.Exit(1)
	}
}

// look compares everything in v with the schema's tags. path is v's name.
func look(path string, v reflect.Value) error {
	var errs []error
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return look(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			errs = append(errs, look(fmt.Sprintf("%s[%d]", path, i), v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || v.Field(i).IsZero() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			errs = append(errs, member(path+"."+name, f.Tag.Get("jsonschema"), v.Field(i)))
		}
	}
	return errors.Join(errs...)
}

// member looks at a member that is set.
func member(path, tag string, v reflect.Value) error {
	var values []string
	for _, t := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(t, "=")
		switch key {
		case "deprecated":
			return fmt.Errorf("%s is deprecated", path)
		case "enum":
			values = append(values, value)
		}
	}
	if text := fmt.Sprint(v); len(values) > 0 && v.Kind() == reflect.String && !strings.Contains(text, "{{") && !slices.Contains(values, text) {
		return fmt.Errorf("%s is %q, want one of %v", path, text, values)
	}
	return look(path, v)
}
