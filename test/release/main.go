// Command release reads goreleaser.yaml without making a release.
//
//	release check FILE
//
// parses the file strictly, with goreleaser's own code, and reports fields that are unknown or
// deprecated in its schema, and values that the schema does not permit. It checks most of what
// "goreleaser check" does, but compiles in seconds instead of minutes.
//
//	release package FILE ID BIN-DIRECTORY VERSION ARCH
//
// prints the nfpm.yaml of one entry of the section nfpms, with which this package alone can be
// built and tested.
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

// check validates a configuration of goreleaser.
func check(file string) error {
	p, err := config.Load(file)
	if err != nil {
		return err
	}
	if p.Version != 2 {
		return fmt.Errorf("version %d, want 2", p.Version)
	}
	return validate("", reflect.ValueOf(p))
}

// validate compares all fields in v with the tags of the schema. path is the name of v in
// errors.
func validate(path string, v reflect.Value) error {
	var errs []error
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return validate(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			errs = append(errs, validate(fmt.Sprintf("%s[%d]", path, i), v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || v.Field(i).IsZero() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			errs = append(errs, validateField(path+"."+name, f.Tag.Get("jsonschema"), v.Field(i)))
		}
	}
	return errors.Join(errs...)
}

// validateField validates a field that is set, and the fields in it. tag is the schema's.
func validateField(path, tag string, v reflect.Value) error {
	var permitted []string
	for _, t := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(t, "=")
		switch key {
		case "deprecated":
			return fmt.Errorf("%s is deprecated", path)
		case "enum":
			permitted = append(permitted, value)
		}
	}
	text := fmt.Sprint(v)
	isText := v.Kind() == reflect.String && !strings.Contains(text, "{{") // not a template
	if isText && len(permitted) > 0 && !slices.Contains(permitted, text) {
		return fmt.Errorf("%s is %q, want one of %v", path, text, permitted)
	}
	return validate(path, v)
}
