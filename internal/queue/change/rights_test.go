package change

import (
	"testing"

	"github.com/berth-hpc/berth/internal/authz"
)

// TestEveryParameterHasARow: a parameter without a row in the table of fields would be
// for operators only, and missing from the documents.
func TestEveryParameterHasARow(t *testing.T) {
	for key := range jobSettings {
		if !authz.HasKey(key) {
			t.Errorf("scontrol update %s= has no row in the table of fields", key)
		}
	}
	for _, f := range authz.Fields() {
		for _, key := range f.Keys {
			s, ok := jobSettings[key]
			if !ok {
				t.Errorf("the table of fields has the parameter %s, which does not exist", key)
			}
			if s.states == pendingOnly && f.While != authz.Waiting {
				t.Errorf("%s: it may change in every state according to the table of fields", key)
			}
		}
	}
}
