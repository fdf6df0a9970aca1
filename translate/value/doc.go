// Package value parses and formats the values of Slurm's options: time limits, sizes,
// node counts, array indexes, signals, times, dependencies, generic resources. Every
// function is pure; those about times have the current time as an argument. Which
// values are valid was recorded from Slurm 22.05.8, in translate/testdata.
package value

import (
	"errors"
	"strconv"
	"strings"
)

// ErrInvalid is the error of every parser here for a value with the wrong syntax. The
// option table translates it to the error of the option.
var ErrInvalid = errors.New("invalid value")

// Count parses a count of at least one (-n, -c, ...): decimal digits, after optional
// blanks or a plus sign as in strtol.
func Count(s string) (int32, error) {
	n, err := integer(s)
	if err != nil || n < 1 || n > 1<<31-1 {
		return 0, ErrInvalid
	}
	return int32(n), nil
}

// CountOrZero is Count that also accepts 0.
func CountOrZero(s string) (int32, error) {
	n, err := integer(s)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0, ErrInvalid
	}
	return int32(n), nil
}

// TooLarge reports whether s is a number above the largest int64, which strtol returns
// in its place.
func TooLarge(s string) bool {
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	return errors.Is(err, strconv.ErrRange) && n > 0
}

// integer parses the whole of s like strtol in base ten.
func integer(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	if err != nil || strings.Contains(s, "_") {
		return 0, ErrInvalid
	}
	return n, nil
}

// digits reports whether s consists of one or more decimal digits.
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

// Leading returns the number that s begins with, like strtoll (for --nice and
// --priority). It ignores the rest, and returns 0 if there is no number.
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
