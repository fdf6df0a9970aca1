package scontrol

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// The help text, the manual page and completion come from the tables of package option, the
// implementations from the table of this package. Both have the same commands and keys.
func TestTablesAgree(t *testing.T) {
	var here, there []string
	for _, k := range keywords {
		here = append(here, k.name)
	}
	for _, v := range option.ScontrolVerbs {
		there = append(there, v.Name)
	}
	slices.Sort(here)
	slices.Sort(there)
	if !slices.Equal(here, there) {
		t.Errorf("the commands are %v, and %v in package option", here, there)
	}
	for _, e := range entities {
		if len(option.ScontrolKeys[e.entity]) == 0 {
			t.Errorf("no keys of %s", e.entity)
		}
	}
	if len(option.ScontrolKeys) != len(entities) || len(option.ScontrolKeys[status.EntityJob]) == 0 {
		t.Errorf("keys of %d entities, want those of %d", len(option.ScontrolKeys), len(entities))
	}
}
