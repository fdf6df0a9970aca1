package value

import (
	"math"
	"strconv"
	"strings"
)

// Megabytes parses a size: an integer with an optional unit K, M (the default), G or T,
// optionally followed by B. Kilobytes are rounded up.
func Megabytes(s string) (int64, error) {
	text := strings.TrimLeft(s, " \t\n\v\f\r")
	text = strings.TrimPrefix(text, "+")
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return 0, ErrInvalid
	}
	factor := int64(1)
	switch strings.ToUpper(text[end:]) {
	case "", "M", "MB":
	case "K", "KB":
		return n/1024 + min(n%1024, 1), nil
	case "G", "GB":
		factor = 1024
	case "T", "TB":
		factor = 1024 * 1024
	default:
		return 0, ErrInvalid
	}
	if n > math.MaxInt64/factor {
		return 0, ErrInvalid
	}
	return n * factor, nil
}

// FormatMegabytes formats MiB with the largest unit that divides it, as Slurm does; M is
// omitted.
func FormatMegabytes(n int64) string {
	switch {
	case n == 0:
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "T"
	case n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + "G"
	}
	return strconv.FormatInt(n, 10)
}
