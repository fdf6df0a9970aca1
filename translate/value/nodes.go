package value

import (
	"fmt"
	"math"
	"strings"
)

// blanks are those of isspace(3) in the C locale; the others of Unicode are none.
const blanks = " \t\n\v\f\r"

// CountError is a node count that cannot be; its text is Slurm's.
type CountError struct{ Text string }

func (e *CountError) Error() string { return e.Text }

// Nodes reads a node count (-N): N or MIN-MAX, each with an optional factor k
// or m. One count is both ends; -MAX is 1-MAX; 0 is "not given", 0 and 0. The
// error is a *CountError.
func Nodes(s string) (least, most int32, err error) {
	text := strings.Trim(s, blanks)
	if strings.HasPrefix(text, "-") && digits(text[1:]) {
		most, _ = nodeCount(text[1:])
		return min(1, most), most, nil
	}
	low, high, ranged := strings.Cut(text, "-")
	least, ok := nodeCount(low)
	if !ok {
		return 0, 0, badCount(low)
	}
	if !ranged {
		return least, least, nil
	}
	if strings.Trim(high, blanks) == "" {
		return 0, 0, &CountError{fmt.Sprintf("Maximum node count -1 is less than minimum node count %d", least)}
	}
	if most, ok = nodeCount(high); !ok {
		return 0, 0, badCount(high)
	}
	if most < least {
		return 0, 0, &CountError{fmt.Sprintf("Maximum node count %d is less than minimum node count %d", most, least)}
	}
	return least, most, nil
}

func badCount(s string) error {
	return &CountError{fmt.Sprintf(`"%s" is not a valid node count`, s)}
}

// nodeCount reads one end. What is too large to count stays the largest count.
func nodeCount(s string) (int32, bool) {
	s = strings.Trim(s, blanks)
	s = strings.TrimPrefix(s, "+")
	factor := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			factor, s = 1024, s[:len(s)-1]
		case 'm', 'M':
			factor, s = 1024*1024, s[:len(s)-1]
		}
	}
	if !digits(s) {
		return 0, false
	}
	n, err := integer(s)
	if err != nil || n > math.MaxInt32/factor {
		return math.MaxInt32, true
	}
	return int32(n * factor), true
}

// FormatNodes writes a node count as Nodes takes it.
func FormatNodes(least, most int32) string {
	if most > 0 && most != least {
		return fmt.Sprintf("%d-%d", least, most)
	}
	return fmt.Sprint(least)
}
