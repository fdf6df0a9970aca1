package value

import (
	"fmt"
	"math"
	"strings"
)

// blanks are the characters of isspace(3) in the C locale.
const blanks = " \t\n\v\f\r"

// CountError is an error about an invalid node count, in Slurm's words.
type CountError struct{ Text string }

func (e *CountError) Error() string { return e.Text }

// Nodes parses a node count (-N): N or MIN-MAX, each with an optional factor k or m. A
// single N is both minimum and maximum; -MAX is 1-MAX; 0 means that no count was given.
// The error is a *CountError.
func Nodes(s string) (least, most int32, err error) {
	text := strings.Trim(s, blanks)
	if high, ok := strings.CutPrefix(text, "-"); ok {
		return nodesUpTo(high)
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

// nodesUpTo parses -MOST without its hyphen.
func nodesUpTo(high string) (least, most int32, err error) {
	switch most, ok := nodeCount(high); {
	case ok:
		return min(1, most), most, nil
	case strings.Trim(high, "-"+blanks) == "" && strings.Count(high, "-") == 0, digits(strings.TrimPrefix(high, "-")):
		return 0, 0, &CountError{"Maximum node count -1 is less than minimum node count 1"}
	}
	return 0, 0, badCount(high)
}

func badCount(s string) error {
	return &CountError{fmt.Sprintf(`"%s" is not a valid node count`, s)}
}

// nodeCount parses one number. A number that is too large becomes the maximum.
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

// FormatNodes formats a node count in the syntax of Nodes.
func FormatNodes(least, most int32) string {
	if most > 0 && most != least {
		return fmt.Sprintf("%d-%d", least, most)
	}
	return fmt.Sprint(least)
}
