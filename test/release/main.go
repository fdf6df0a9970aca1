// Command release reads goreleaser.yaml without making a release.
//
//	release check FILE
//
// reads it as goreleaser itself does, strictly, and looks at what its schema
// says of members: none that is unknown or deprecated, no value that is none of
// those that it takes. It is much of "goreleaser check", and takes seconds to
// compile, where that takes minutes.
//
//	release package FILE ID BIN-DIRECTORY VERSION ARCH
//
// prints the nfpm.yaml that one entry of the section nfpms stands for, so that
// a package can be made and tried by itself.
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
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "check":
		err = check(args[1])
	case len(args) == 6 && args[0] == "package":
		err = writePackage(os.Stdout, args[1], target{id: args[2], bin: args[3], version: args[4], arch: args[5]})
	default:
		fmt.Fprintln(os.Stderr, "usage: release check FILE | release package FILE ID BIN-DIRECTORY VERSION ARCH")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release: error:", err)
		os.Exit(1)
	}
}

func check(file string) error {
	p, err := config.Load(file)
	if err != nil {
		return err
	}
	if p.Version != 2 {
		return fmt.Errorf("version %d, want 2", p.Version)
	}
	return look("", reflect.ValueOf(p))
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
