package option

import "maps"

// Tests are a copy of the tests that options name.
func Tests() map[string]string { return maps.Clone(tests) }

// HasValues tells whether values.go knows the option.
func HasValues(name string, o *Option) bool {
	_, in := valuesIn[name+" "+o.Name]
	_, all := values[o.Name]
	return in || all
}

// ValueKeys are the keys of values.go.
func ValueKeys() (keys []string) {
	for k := range values {
		keys = append(keys, k)
	}
	for k := range valuesIn {
		keys = append(keys, k)
	}
	return keys
}
