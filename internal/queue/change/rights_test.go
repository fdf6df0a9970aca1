package change

import (
	"testing"

	"github.com/berth-hpc/berth/internal/authz"
)

// TestEveryParameterHasARow: one without would be for operators alone, and not
// in the documents.
func TestEveryParameterHasARow(t *testing.T) {
	for key := range settings {
		if !authz.HasKey(key) {
			t.Errorf("scontrol update %s= has no row in the table of fields", key)
		}
	}
	for _, f := range authz.Fields() {
		for _, key := range f.Keys {
			s, ok := settings[key]
			if !ok {
				t.Errorf("the table has the parameter %s, which there is not", key)
			}
			if s.phase == waiting && f.While != authz.Waiting {
				t.Errorf("%s: the table says that it may always change", key)
			}
		}
	}
}
