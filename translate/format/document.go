package format

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/berth-hpc/berth/translate/dump"
)

// Object is a JSON or YAML object with ordered members.
type Object []Member

// Member is one member of an Object. Value is nil, a bool, a number, a string,
// an Object or a []any of those.
type Member struct {
	Name  string
	Value any
}

// MarshalJSON encodes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// AppendYAML appends a document as Slurm 22.05 writes it: every value has its tag.
func AppendYAML(b []byte, o Object) ([]byte, error) {
	b = append(b, "%YAML 1.1\n--- !!map\n"...)
	b, err := appendMembers(b, o, "")
	return append(b, "...\n"...), err
}

func appendMembers(b []byte, o Object, indent string) ([]byte, error) {
	var err error
	for _, m := range o {
		b = append(b, indent+"!!str "+m.Name+":"...)
		if b, err = appendYAMLValue(b, m.Value, indent); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendYAMLValue(b []byte, v any, indent string) (_ []byte, err error) {
	switch x := v.(type) {
	case Object:
		if len(x) == 0 {
			return append(b, " !!map {}\n"...), nil
		}
		return appendMembers(append(b, " !!map\n"...), x, indent+"  ")
	case []any:
		if len(x) == 0 {
			return append(b, " !!seq []\n"...), nil
		}
		b = append(b, " !!seq\n"...)
		for _, item := range x {
			b = append(b, indent+"-"...)
			if b, err = appendYAMLValue(b, item, indent); err != nil {
				return b, err
			}
		}
		return b, nil
	case nil:
		return append(b, " !!null null\n"...), nil
	case bool:
		return append(b, " !!bool "+strconv.FormatBool(x)+"\n"...), nil
	case string:
		if x == "" {
			return append(b, " !!str\n"...), nil
		}
		return append(dump.AppendYAMLText(append(b, " !!str "...), x), '\n'), nil
	case float64:
		return append(b, " !!float "+strconv.FormatFloat(x, 'g', -1, 64)+"\n"...), nil
	case int, int32, int64:
		return append(b, fmt.Sprintf(" !!int %d\n", x)...), nil
	}
	return b, fmt.Errorf("a document cannot hold a %T", v)
}
