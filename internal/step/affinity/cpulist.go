package affinity

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// ParseCPUList parses a list such as "0-3,8" into ascending numbers; an empty list has
// none.
func ParseCPUList(list string) ([]int, error) {
	var ids []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if part == "" {
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last > 1<<16 {
			return nil, fmt.Errorf("malformed CPU list %q", list)
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	sort.Ints(ids)
	return ids, nil
}

// FormatCPUList returns ascending ids as a list such as "0-3,8".
func FormatCPUList(ids []int) string {
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
