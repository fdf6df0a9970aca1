package value

import (
	"fmt"
	"regexp"
	"strings"
)

// BindError is a binding that cannot be read; its text is Slurm's.
type BindError struct{ Text string }

func (e *BindError) Error() string { return e.Text }

// bindLists are the words of --cpu-bind and --mem-bind that a list follows.
var bindLists = []string{"map_cpu", "mask_cpu", "map_ldom", "mask_ldom", "map_mem", "mask_mem"}

// bindList is a list of numbers or hexadecimal masks, each with an optional
// number of repetitions.
var bindList = regexp.MustCompile(`^(0x)?[0-9a-f]+(\*[0-9]+)?(,(0x)?[0-9a-f]+(\*[0-9]+)?)*$`)

// bindWords splits a binding at the commas that do not part the entries of a
// list.
func bindWords(s string) []string {
	var words []string
	inList := false
	for w := range strings.SplitSeq(s, ",") {
		if inList && w != "" && strings.IndexByte("0123456789", w[0]) >= 0 {
			words[len(words)-1] += "," + w
			continue
		}
		head, _, _ := strings.Cut(w, ":")
		inList = false
		for _, l := range bindLists {
			inList = inList || strings.EqualFold(head, l)
		}
		words = append(words, w)
	}
	return words
}

var cpuBindWords = map[string]bool{"q": true, "quiet": true, "v": true, "verbose": true, "no": true, "none": true, "rank": true,
	"rank_ldom": true, "sockets": true, "cores": true, "threads": true, "ldoms": true, "one_thread": true, "core": true, "socket": true,
	"thread": true, "ldom": true}

// CPUBind checks a --cpu-bind value. The error is a *BindError.
func CPUBind(s string) error {
	for _, w := range bindWords(s) {
		head, list, _ := strings.Cut(strings.ToLower(w), ":")
		switch head {
		case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom":
			if list == "" {
				return &BindError{fmt.Sprintf("missing list for \"--cpu-bind=%s:<list>\"", head)}
			}
			if err := numbers(list, strings.HasPrefix(head, "mask")); err != nil {
				return err
			}
			if !bindList.MatchString(list) {
				return &BindError{fmt.Sprintf("unrecognized --cpu-bind argument %q", w)}
			}
		default:
			if !cpuBindWords[strings.ToLower(w)] {
				return &BindError{fmt.Sprintf("unrecognized --cpu-bind argument %q", w)}
			}
		}
	}
	return nil
}

// numbers names the first item of a list that is no number, and what it has
// that numbers do not.
func numbers(list string, masks bool) error {
	for item := range strings.SplitSeq(list, ",") {
		digits, rest := "0123456789*", item
		if hex, ok := strings.CutPrefix(item, "0x"); ok || masks {
			digits, rest = "0123456789abcdef*", hex
		}
		if bad := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune(digits, r) }); bad >= 0 {
			return &BindError{fmt.Sprintf("Failed to validate number: %s, the offending character is %c", item, rest[bad])}
		}
	}
	return nil
}

// MemBind reads a --mem-bind value and writes it as Slurm shows it. The error
// is a *BindError.
func MemBind(s string) (string, error) {
	var flags [3]string // verbose, prefer, sort
	kind := ""
	for _, w := range bindWords(s) {
		head, list, _ := strings.Cut(strings.ToLower(w), ":")
		switch head {
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
			kind = head
		case "map_mem", "mask_mem":
			if list == "" {
				return "", &BindError{fmt.Sprintf("missing list for \"--mem-bind=%s:<list>\"", head)}
			}
			if !bindList.MatchString(list) {
				return "", &BindError{fmt.Sprintf("unrecognized --mem-bind argument %q", w)}
			}
			kind = head + ":" + strings.ReplaceAll(list, "0x", "")
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

// Distribution reads --distribution (-m) and writes it as Slurm shows it:
// block, cyclic, plane=N or arbitrary for the nodes, then block, cyclic or
// fcyclic for sockets and for cores, then pack or nopack. An asterisk stands
// for the level's default.
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
		case l == "*" && i == 0 && strings.Contains(text, ":"):
			l = "block"
		case l == "*" && i > 0:
			l = "cyclic"
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
