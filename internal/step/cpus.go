package step

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// ParseCPUs reads a list such as "0-3,8", ascending.
func ParseCPUs(list string) ([]int, error) {
	var ids []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if part == "" {
			continue
		}
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		b := a
		if err == nil && ranged {
			b, err = strconv.Atoi(to)
		}
		if err != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("malformed CPU list %q", list)
		}
		for ; a <= b; a++ {
			ids = append(ids, a)
		}
	}
	sort.Ints(ids)
	return ids, nil
}

// FormatCPUs writes ascending ids as a list such as "0-3,8".
func FormatCPUs(ids []int) string {
	var b strings.Builder
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(ids[j]))
		}
		i = j + 1
	}
	return b.String()
}
