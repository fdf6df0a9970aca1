package main

import (
	"encoding/json"
	"testing"
)

func TestIncludes(t *testing.T) {
	const twice = `[{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.25.13"}, {"introduced": "1.26.0-0"}, {"fixed": "1.26.6"}]}]`
	for _, c := range []struct {
		ranges, version string
		hit             bool
		fixed           string
	}{
		{twice, "1.25.12", true, "1.25.13"},
		{twice, "1.25.13", false, ""},
		{twice, "1.26.0", true, "1.26.6"},
		{twice, "v1.26.6", false, ""},
		{`[{"type": "SEMVER", "events": [{"introduced": "1.2.0"}]}]`, "v1.3.0", true, ""},
		{`[{"type": "SEMVER", "events": [{"introduced": "1.2.0"}]}]`, "v1.1.0", false, ""},
		{`[{"type": "GIT", "events": []}]`, "v1.1.0", true, ""},
		{`[]`, "v1.1.0", true, ""},
	} {
		var a affected
		if err := json.Unmarshal([]byte(`{"ranges": `+c.ranges+`}`), &a); err != nil {
			t.Fatal(err)
		}
		if hit, fixed := a.includes(c.version); hit != c.hit || fixed != c.fixed {
			t.Errorf("%s in %s: %v, %q", c.version, c.ranges, hit, fixed)
		}
	}
}
