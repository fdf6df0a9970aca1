package query

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/value"
)

// compareNumber returns the test that an operator and a value make.
func compareNumber(f *field, op, value string) (func(int64) bool, error) {
	n, err := parseNumber(f, value)
	if err != nil {
		return nil, err
	}
	switch op {
	case ">=":
		return func(v int64) bool { return v >= n }, nil
	case "<=":
		return func(v int64) bool { return v <= n }, nil
	case ">":
		return func(v int64) bool { return v > n }, nil
	case "<":
		return func(v int64) bool { return v < n }, nil
	case ":", "=", "==":
		return func(v int64) bool { return v == n }, nil
	}
	return nil, fmt.Errorf("%s%s: write one of = != < <= > >=", f.names[0], op)
}

// parseNumber parses a value in the unit of the field: 4, 10k, 64G, 2h30m,
// 1-12:00:00, unlimited.
func parseNumber(f *field, text string) (int64, error) {
	want := map[kind]string{
		number: "a number", gpus: "a number", memory: "an amount of memory (64G)",
		span: "a time (2h, 1-12:00:00)", minute: "a time (2h, 1-12:00:00)",
	}[f.kind]
	bad := fmt.Errorf("%s: %q is not %s", f.names[0], printable.Escape(text), want)
	switch f.kind {
	case memory:
		n, unit, err := splitUnit(text)
		scale, ok := map[string]float64{"": 1, "k": 1.0 / 1024, "m": 1, "g": 1024,
			"t": 1 << 20}[strings.TrimSuffix(unit, "b")]
		if err != nil || !ok {
			return 0, bad
		}
		return int64(n * scale), nil
	case span, minute:
		if strings.HasPrefix("unlimited", strings.ToLower(text)) && f.kind == minute {
			return 1 << 40, nil
		}
		seconds, ok := parseSpan(text)
		if !ok {
			return 0, bad
		}
		if f.kind == minute {
			return seconds / 60, nil
		}
		return seconds, nil
	}
	n, unit, err := splitUnit(text)
	scale, ok := map[string]float64{"": 1, "k": 1e3, "m": 1e6}[unit]
	if err != nil || !ok {
		return 0, bad
	}
	return int64(n * scale), nil
}

// splitUnit splits text into a number and its unit, in lower case.
func splitUnit(text string) (float64, string, error) {
	at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at < 0 {
		at = len(text)
	}
	n, err := strconv.ParseFloat(text[:at], 64)
	return n, strings.ToLower(text[at:]), err
}

// parseSpan parses 90s, 2h30m, 3d, or a time as Slurm writes it: MM, MM:SS, HH:MM:SS,
// D-HH, D-HH:MM or D-HH:MM:SS.
func parseSpan(text string) (seconds int64, ok bool) {
	if strings.ContainsAny(text, ":-") {
		seconds, err := value.Seconds(text)
		return seconds, err == nil && text[0] != '-'
	}
	total, rest := 0.0, strings.ToLower(text)
	for rest != "" {
		n, after, err := splitUnit(rest)
		if err != nil {
			return 0, false
		}
		if after == "" {
			return int64(total + n*60), true
		}
		scale, ok := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}[after[0]]
		if !ok {
			return 0, false
		}
		total += n * scale
		rest = after[1:]
	}
	return int64(total), true
}
