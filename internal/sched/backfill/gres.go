package backfill

import "slices"

// subtractGRES takes what is used from have, in place. A used entry whose type
// have does not list is taken from any entry of that name.
func subtractGRES(have, used []GRES) []GRES {
	for _, u := range used {
		left := u.Count
		for i := range have {
			h := &have[i]
			if left > 0 && h.Name == u.Name && (u.Type == "" || h.Type == u.Type) {
				n := min(left, h.Count)
				h.Count -= n
				left -= n
			}
		}
	}
	return have
}

// grab chooses count units of each request, times factor, out of have. It
// reports false when have does not hold them.
func grab(have, want []GRES, factor int64) ([]GRES, bool) {
	have = slices.Clone(have)
	var out []GRES
	for _, w := range want {
		left := w.Count * factor
		for i := range have {
			h := &have[i]
			if left > 0 && h.Count > 0 && h.Name == w.Name && (w.Type == "" || h.Type == w.Type) {
				n := min(left, h.Count)
				h.Count -= n
				left -= n
				out = append(out, GRES{Name: h.Name, Type: h.Type, Count: n})
			}
		}
		if left > 0 {
			return nil, false
		}
	}
	return out, true
}
