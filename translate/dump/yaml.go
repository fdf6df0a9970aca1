package dump

import (
	"encoding/json"

	"github.com/berth-hpc/berth/internal/printable"
)

func (w *writer) yamlKey(key string) {
	if w.dash { // on the same line as the dash
		w.dash = false
		w.b = append(w.b, ' ')
	} else if len(w.b) > 0 {
		if w.b[len(w.b)-1] != '\n' {
			w.b = append(w.b, '\n')
		}
		for range w.column {
			w.b = append(w.b, ' ')
		}
	}
	w.empty = false
	if key == "" {
		w.b = append(w.b, '-')
		return
	}
	if w.tagged() {
		w.b = append(w.b, "!!str "...)
	}
	w.b = append(append(w.b, key...), ':')
}

// yamlGroup writes an object or an array; the outermost one has no key.
func (w *writer) yamlGroup(key, tag, empty string, inside func()) {
	outermost := w.depth == 0
	if !outermost {
		w.key(key, tag)
	}
	w.depth++
	w.empty = true
	if tag == "map" && !outermost {
		w.column += 2
		w.dash = key == "" && !w.tagged()
	}
	inside()
	w.depth--
	if tag == "map" && !outermost {
		w.column -= 2
	}
	if w.empty {
		w.b = append(append(w.b, ' '), empty...)
	}
	w.empty, w.dash = false, false
}

// AppendYAMLText appends the text of a string value, quoted if YAML would parse it
// differently otherwise.
func AppendYAMLText(b []byte, s string) []byte {
	if s == "" {
		return append(b, `""`...)
	}
	plain := s[0] != ' ' && s[0] != '-' && s[0] != '[' && s[0] != ',' && s[0] != ']' && s[len(s)-1] != ' '
	for i := 0; plain && i < len(s); i++ {
		plain = isPlain(s[i])
	}
	if plain {
		return append(b, s...)
	}
	quoted, err := json.Marshal(s)
	if err != nil { // impossible for strings
		return append(b, `""`...)
	}
	return append(b, printable.JSON(quoted)...)
}

func isPlain(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	switch c {
	case '_', '.', '/', ' ', '-', '[', ']', ',', '=', '(', ')', '+', '%':
		return true
	}
	return false
}
