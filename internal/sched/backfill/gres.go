package backfill

import "slices"

// subtractGRES subtracts used from have, in place. A used entry whose type have
// does not list is subtracted from any entry of that name.
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

// countGRES returns how many units of g are in have; a g without a type counts all types of its
// name.
func countGRES(have []GRES, g GRES) int64 {
	sum := int64(0)
	for i := range have {
		if have[i].Name == g.Name && (g.Type == "" || g.Type == have[i].Type) {
			sum += have[i].Count
		}
	}
	return sum
}

// wholeGRES returns all generic resources of the node, which an exclusive job gets
// whether it requests them or not.
func (n *nodeState) wholeGRES() []GRES {
	if len(n.GRES) == 0 {
		return nil
	}
	all := subtractGRES(slices.Clone(n.GRES), n.UsedGRES)
	return slices.DeleteFunc(all, func(g GRES) bool { return g.Count <= 0 })
}

// shareOf returns the part of each that the next node of a job gets, if inAll is left for
// it and for the given number of nodes after it. It subtracts the part from inAll.
func shareOf(each, inAll []GRES, after int) []GRES {
	if len(inAll) == 0 {
		return each
	}
	each = slices.Clone(each)
	for i := range each {
		for k := range inAll {
			if left := &inAll[k]; left.Name == each[i].Name && left.Type == each[i].Type {
				each[i].Count = min(each[i].Count, max(1, left.Count-int64(after)))
				left.Count -= each[i].Count
			}
		}
	}
	return each
}

// allocateGRES returns the units of have that satisfy each request, times factor. It
// reports false if have has too few, and does not modify have.
func allocateGRES(have, want []GRES, factor int64) ([]GRES, bool) {
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
