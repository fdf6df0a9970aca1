// Package value reads the forms that values of Slurm's options take: time
// limits, sizes, node counts, array indexes, signals, instants, dependencies,
// generic resources. Every function is pure; instants need the present as an
// argument. What is accepted was asked of Slurm 22.05.8, value by value, and
// lies in translate/testdata.
package value

import (
	"errors"
	"strconv"
	"strings"
)

// ErrInvalid is what every parser here returns for a value that has not its
// form; the option table turns it into the message of the option.
var ErrInvalid = errors.New("invalid value")

// Count reads a count of at least one (-n, -c, ...): decimal digits, with
// blanks or a plus sign ahead as strtol takes them.
func Count(s string) (int32, error) {
	n, err := integer(s)
	if err != nil || n < 1 || n > 1<<31-1 {
		return 0, ErrInvalid
	}
	return int32(n), nil
}

// CountOrZero is Count that takes 0 as well.
func CountOrZero(s string) (int32, error) {
	n, err := integer(s)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0, ErrInvalid
	}
	return int32(n), nil
}

// integer is strtol in base ten over the whole of s.
func integer(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	if err != nil || strings.Contains(s, "_") {
		return 0, ErrInvalid
	}
	return n, nil
}

// digits tells whether s is one or more decimal digits.
func digits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Leading reads the number at the front of s as strtoll does: what follows is
// ignored, and no number is 0 (--nice and --priority take that).
func Leading(s string) int64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	if end < len(s) && (s[0] == '-' || s[0] == '+') {
		end = 1
	}
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseInt(s[:end], 10, 64)
	return n
}
