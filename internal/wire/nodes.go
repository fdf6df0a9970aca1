package wire

// NodeAt is the number at a place, from 0, of a list as AnnotationNodes has it:
// ascending numbers and runs of them, such as "0,2-4,7". ok is false beyond its
// end, and for a text that is no such list.
func NodeAt(list string, place int) (node int, ok bool) {
	for place >= 0 && list != "" {
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
		if place <= last-first {
			return first + place, true
		}
		place -= last - first + 1
	}
	return 0, false
}

// cutAt parts s at the first c; without one, all of s is ahead of it.
func cutAt(s string, c byte) (before, after string) {
	for i := range len(s) {
		if s[i] == c {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// digits reads a number below a billion.
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
