package refusal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// TestRefusalsAreFoundInErrors: a refusal is found in whatever wraps it, and the refusal of
// a setting is that of its message.
func TestRefusalsAreFoundInErrors(t *testing.T) {
	var err error = Setting{Message: InvalidNodeState, Parameter: "State", Value: "x"}
	wrapped := fmt.Errorf("item 3: %w", err)
	var text Text
	if !errors.Is(wrapped, InvalidNodeState) || errors.Is(wrapped, InvalidJobID) || !errors.As(wrapped, &text) ||
		text != InvalidNodeState || err.Error() != string(InvalidNodeState) {
		t.Errorf("%v: %q", wrapped, text)
	}
}

// TestCodesAreDistinct: clients decide by these codes, so no two refusals that mean
// different things may share one.
func TestCodesAreDistinct(t *testing.T) {
	seen := map[status.ErrorCode]Text{}
	for text, code := range codes {
		other, taken := seen[code]
		if both := text == PartNodesNeedsAll || text == PartNodesNeedsAllUpdate; code == "" || taken && !both {
			t.Errorf("%q and %q have the code %q", text, other, code)
		}
		seen[code] = text
	}
	if AccessDenied.Code() != status.CodeAccessDenied || Text("other").Code() != "" {
		t.Errorf("%q, %q", AccessDenied.Code(), Text("other").Code())
	}
}
