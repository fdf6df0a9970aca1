package admission

import (
	"encoding/json"
	"fmt"
	"strings"
)

// patch is a JSON patch (RFC 6902) that is being built, with warnings for the sender. It
// contains only what changes: the object may be large.
type patch struct {
	ops      []op
	warnings []string
}

type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// set sets a member of an object that exists.
func (p *patch) set(path string, value any) {
	p.ops = append(p.ops, op{Op: "add", Path: path, Value: value})
}

// remove removes a member that exists.
func (p *patch) remove(path string) { p.ops = append(p.ops, op{Op: "remove", Path: path}) }

func (p *patch) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// json returns the encoded patch, or nil if it changes nothing.
func (p *patch) json() ([]byte, error) {
	if len(p.ops) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(p.ops)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return b, nil
}

// escape returns a member's name as it is written in a path (RFC 6901).
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
