package value

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// BindError is an error about an invalid binding, in Slurm's words.
type BindError struct{ Text string }

func (e *BindError) Error() string { return e.Text }

// BindWords splits a value of --cpu-bind or --mem-bind into words, at each comma that
// is not followed by a value of a list. A value starts with a digit, or consists of
// hexadecimal digits up to the next comma or the end, or is empty.
func BindWords(s string) []string {
	var words []string
	start := 0
	for i := range len(s) {
		if s[i] == ',' && !startsWithValue(s[i+1:]) {
			words, start = append(words, s[start:i]), i+1
		}
	}
	return append(words, s[start:])
}

// startsWithValue reports whether s starts with a value of a list.
func startsWithValue(s string) bool {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		return true
	}
	rest := strings.TrimLeft(s, hexDigits)
	return rest == "" || rest[0] == ','
}

const (
	decimalDigits = "0123456789"
	hexDigits     = decimalDigits + "abcdefABCDEF"
)

// maxRepeats is the maximum N of *N, which repeats an entry of a list.
const maxRepeats = 1 << 16

// BindList parses the list of a word such as map_cpu or mask_mem: numbers, or
// hexadecimal masks for words that start with mask. It returns masks without 0x, and
// entries with *N repeated N times. The error is a *BindError.
func BindList(word, list string) ([]string, error) {
	masks := strings.HasPrefix(word, "mask")
	var out []string
	for entry := range strings.SplitSeq(list, ",") {
		if entry == "" {
			continue
		}
		number, times, many := strings.Cut(entry, "*")
		allowed := decimalDigits
		if masks {
			number, allowed = strings.TrimPrefix(number, "0x"), hexDigits
		}
		if err := bindNumber(number, number, allowed); err != nil {
			return nil, err
		}
		n := 1
		if many {
			if err := bindNumber("*"+times, times, decimalDigits); err != nil {
				return nil, err
			}
			var err error
			if n, err = strconv.Atoi(times); err != nil || n < 1 || n > maxRepeats {
				return nil, &BindError{fmt.Sprintf("Invalid %s multiplier: %s", word, times)}
			}
		}
		if number == "" {
			return nil, &BindError{fmt.Sprintf("unrecognized argument \"%s:%s\"", word, list)}
		}
		if len(out)+n > maxRepeats {
			return nil, &BindError{fmt.Sprintf("too many entries in \"%s:%s\"", word, list)}
		}
		for range n {
			out = append(out, number)
		}
	}
	return out, nil
}

// bindNumber returns an error unless rest, the end of text, has only allowed
// characters.
func bindNumber(text, rest, allowed string) error {
	bad := strings.TrimLeft(rest, allowed)
	if bad == "" {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(bad)
	return &BindError{fmt.Sprintf("Failed to validate number: %s, the offending character is %c", text, r)}
}

var cpuBindWords = map[string]bool{
	"q": true, "quiet": true, "v": true, "verbose": true, "no": true, "none": true, "rank": true, "rank_ldom": true,
	"sockets": true, "cores": true, "threads": true, "ldoms": true, "one_thread": true, "core": true, "socket": true,
	"thread": true, "ldom": true,
}

// CPUBind checks a --cpu-bind value. The error is a *BindError.
func CPUBind(s string) error {
	for _, w := range BindWords(s) {
		word, list, _ := strings.Cut(w, ":")
		switch word = strings.ToLower(word); word {
		case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom":
			if strings.Trim(list, ",") == "" {
				return &BindError{fmt.Sprintf("missing list for \"--cpu-bind=%s:<list>\"", word)}
			}
			if _, err := BindList(word, list); err != nil {
				return err
			}
		default:
			if !cpuBindWords[strings.ToLower(w)] {
				return &BindError{fmt.Sprintf("unrecognized --cpu-bind argument %q", w)}
			}
		}
	}
	return nil
}

// MemBind returns a value of --mem-bind as Slurm shows it. The error is a *BindError.
func MemBind(s string) (string, error) {
	var flags [3]string // verbose, prefer, sort
	kind := ""
	for _, w := range BindWords(s) {
		word, list, listed := strings.Cut(w, ":")
		word = strings.ToLower(word)
		if listed && word != "map_mem" && word != "mask_mem" {
			return "", &BindError{fmt.Sprintf("unrecognized --mem-bind argument %q", w)}
		}
		switch word {
		case "v", "verbose":
			flags[0] = "verbose"
		case "q", "quiet":
			flags[0] = ""
		case "p", "prefer":
			flags[1] = "prefer"
		case "sort":
			flags[2] = "sort"
		case "nosort":
			flags[2] = ""
		case "no", "none":
			kind = "none"
		case "rank", "local":
			kind = word
		case "map_mem", "mask_mem":
			if strings.Trim(list, ",") == "" {
				return "", &BindError{fmt.Sprintf("missing list for \"--mem-bind=%s:<list>\"", word)}
			}
			entries, err := BindList(word, list)
			if err != nil {
				return "", err
			}
			kind = word + ":" + strings.Join(entries, ",")
		default:
			return "", &BindError{fmt.Sprintf("unrecognized --mem-bind argument %q", w)}
		}
	}
	var out []string
	for _, w := range append(flags[:], kind) {
		if w != "" {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return "unset", nil
	}
	return strings.Join(out, ","), nil
}

// Distribution returns a value of --distribution (-m) as Slurm shows it: block,
// cyclic, plane=N or arbitrary for nodes, then block, cyclic or fcyclic for sockets
// and for cores, then pack or nopack. An asterisk selects the default of its level.
func Distribution(s string) (string, error) {
	text := strings.ToLower(s)
	levels, pack, packed := strings.Cut(text, ",")
	if text == "pack" || text == "nopack" {
		return text, nil
	}
	if packed && pack != "" && pack != "pack" && pack != "nopack" {
		return "", ErrInvalid
	}
	out, err := distributionLevels(levels)
	if err != nil {
		return "", err
	}
	if pack != "" {
		if strings.HasPrefix(out, "plane") {
			return "", errPlane
		}
		out += "," + pack
	}
	return out, nil
}

var errPlane = &BindError{"Invalid plane size or size not specified"}

func distributionLevels(text string) (string, error) {
	if size, plane := strings.CutPrefix(text, "plane"); plane {
		n, err := Count(strings.TrimPrefix(size, "="))
		if !strings.HasPrefix(size, "=") || err != nil {
			return "", errPlane
		}
		return fmt.Sprintf("plane=%d", n), nil
	}
	if text == "arbitrary" {
		return text, nil
	}
	var out []string
	for i, l := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' }) {
		switch {
		case l == "*" && i == 0:
			l = "block"
		case l == "*" && i == 1:
			l = "cyclic"
		case l == "*":
			l = out[len(out)-1] // cores default to the distribution of sockets
		case l == "block" || l == "cyclic" || l == "fcyclic" && i > 0:
		default:
			return "", ErrInvalid
		}
		if i > 2 {
			return "", ErrInvalid
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return "", ErrInvalid
	}
	return strings.Join(out, ":"), nil
}
