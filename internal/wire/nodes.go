package wire

// NodeAt returns the number at a position, from 0, in a list in the form of
// AnnotationNodes: ascending numbers and ranges, such as "0,2-4,7". ok is false beyond
// the end of the list, and for malformed lists.
func NodeAt(list string, position int) (node int, ok bool) {
	for position >= 0 && list != "" {
		var item string
		item, list = cutAt(list, ',')
		low, high := cutAt(item, '-')
		first, good := digits(low)
		last := first
		if good && len(low) < len(item) {
			last, good = digits(high)
		}
		if !good || last < first {
			return 0, false
		}
		if position <= last-first {
			return first + position, true
		}
		position -= last - first + 1
	}
	return 0, false
}

// cutAt cuts s at the first c. Without one, before is all of s.
func cutAt(s string, c byte) (before, after string) {
	for i := range len(s) {
		if s[i] == c {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// digits parses a number below a billion.
func digits(s string) (n int, ok bool) {
	if len(s) == 0 || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
