package main

import (
	"runtime/debug"
	"testing"
)

func TestDocument(t *testing.T) {
	b := document("berth", &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "example.org/m", Version: "v1.0.0"},
		Deps: []*debug.Module{{Path: "example.org/a", Version: "v1.2.3"}, {Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0"}}}})
	if b.Metadata.Component.Name != "berth" || b.Metadata.Component.PURL != "pkg:golang/example.org/m@v1.0.0" {
		t.Errorf("%+v", b.Metadata)
	}
	want := []string{"pkg:golang/std@go1.26.0", "pkg:golang/example.org/a@v1.2.3", "pkg:golang/example.org/c@v2.0.0"}
	if len(b.Components) != len(want) {
		t.Fatalf("%+v", b.Components)
	}
	for i, c := range b.Components {
		if c.PURL != want[i] || c.Type != "library" {
			t.Errorf("%+v, want %s", c, want[i])
		}
	}
}
