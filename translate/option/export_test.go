package option

import "maps"

// Tests returns a copy of the tests of options.
func Tests() map[string]string { return maps.Clone(tests) }

// HasValues reports whether values.go has the option.
func HasValues(name string, o *Option) bool {
	_, in := valuesIn[name+" "+o.Name]
	_, all := values[o.Name]
	return in || all
}

// ValueKeys returns the keys of values.go.
func ValueKeys() (keys []string) {
	for k := range values {
		keys = append(keys, k)
	}
	for k := range valuesIn {
		keys = append(keys, k)
	}
	return keys
}
