package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Fold returns an expression for names in their order, as scontrol show hostlist
// prints it: consecutive names with the same prefix share brackets, and runs of
// numbers become ranges. Expand(Fold(names)) returns names, if they contain no
// commas, blanks or brackets. The expression for no names is empty.
func Fold(names []string) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		prefix, digits := split(names[i])
		end := i + 1
		if digits != "" {
			for end < len(names) {
				p, d := split(names[end])
				if d == "" || p != prefix {
					break
				}
				end++
			}
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		foldGroup(&b, prefix, names[i:end])
		i = end
	}
	return b.String()
}

// FoldSorted is Fold of the names in the order of Sort, without duplicates.
func FoldSorted(names []string) string {
	sorted := slices.Clone(names)
	Sort(sorted)
	return Fold(slices.Compact(sorted))
}

// SortHosts sorts names as scontrol show hostlistsorted does: by prefix, then by number,
// or by the number of digits where one of two numbers is padded and the other has
// another width.
func SortHosts(names []string) { slices.SortStableFunc(names, compareHosts) }

func compareHosts(a, b string) int {
	pa, da := split(a)
	pb, db := split(b)
	if pa != pb || da == "" || db == "" {
		return cmp.Or(strings.Compare(pa, pb), len(da)-len(db))
	}
	na, _ := strconv.ParseInt(da, 10, 64)
	nb, _ := strconv.ParseInt(db, 10, 64)
	if pad(na, len(db)) != da && pad(nb, len(da)) != db {
		return len(da) - len(db)
	}
	return cmp.Compare(na, nb)
}

// Sort sorts names as Slurm sorts nodes: by prefix, then by the number of digits, then by
// number.
func Sort(names []string) {
	slices.SortFunc(names, Compare)
}

// Compare compares two names in the order of Sort.
func Compare(a, b string) int {
	pa, da := split(a)
	pb, db := split(b)
	if pa != pb {
		return strings.Compare(pa, pb)
	}
	if len(da) != len(db) {
		return len(da) - len(db)
	}
	return strings.Compare(da, db)
}

// split splits a name into a prefix and a number at its end. Excess digits of a
// number that is too long stay part of the prefix.
func split(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' && len(name)-i < maxDigit {
		i--
	}
	return name[:i], name[i:]
}

// foldGroup writes names with the same prefix. A single name has no brackets.
func foldGroup(b *strings.Builder, prefix string, names []string) {
	if len(names) == 1 {
		b.WriteString(names[0])
		return
	}
	b.WriteString(prefix)
	b.WriteByte('[')
	for i := 0; i < len(names); {
		if i > 0 {
			b.WriteByte(',')
		}
		first := names[i][len(prefix):]
		last := first
		n, _ := strconv.ParseInt(first, 10, 64)
		for i++; i < len(names); i++ {
			next := names[i][len(prefix):]
			if n++; pad(n, len(first)) != next {
				break
			}
			last = next
		}
		b.WriteString(first)
		if last != first {
			b.WriteByte('-')
			b.WriteString(last)
		}
	}
	b.WriteByte(']')
}
