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

// wholeGRES returns all generic resources of the node, which a job that has the node
// for itself gets whether it requests them or not.
func (n *nodeState) wholeGRES() []GRES {
	if len(n.GRES) == 0 {
		return nil
	}
	all := subtractGRES(slices.Clone(n.GRES), n.UsedGRES)
	return slices.DeleteFunc(all, func(g GRES) bool { return g.Count <= 0 })
}

// shareOf returns what the next node of a job gets of each, while inAll is left
// for it and for behind nodes after it. It subtracts that from inAll.
func shareOf(each, inAll []GRES, behind int) []GRES {
	if len(inAll) == 0 {
		return each
	}
	each = slices.Clone(each)
	for i := range each {
		for k := range inAll {
			if left := &inAll[k]; left.Name == each[i].Name && left.Type == each[i].Type {
				each[i].Count = min(each[i].Count, max(1, left.Count-int64(behind)))
				left.Count -= each[i].Count
			}
		}
	}
	return each
}

// grab returns the units of each request, times factor, out of have. It reports
// false if have has too few.
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
