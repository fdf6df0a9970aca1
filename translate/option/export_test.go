package option

import "maps"

// Tests are a copy of the tests that options name.
func Tests() map[string]string { return maps.Clone(tests) }
