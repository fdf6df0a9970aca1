package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// maxNodes is the maximum number of nodes that are listed individually.
const maxNodes = 100

// nodes completes a host list: n1,gpu[1-3,5
func (c *cursor) nodes(prefix, text string) Answer {
	at, open := 0, -1
	for i := range len(text) {
		switch text[i] {
		case ',':
			if open < 0 {
				at = i + 1
			}
		case '[':
			open = i
		case ']':
			open = -1
		}
	}
	all := c.lists(option.Nodes)
	if open >= 0 {
		return inBracket(prefix+text[:open+1], text[at:open], text[open+1:], all)
	}
	used, err := hostlist.Expand(text[:at])
	if err != nil {
		return Answer{}
	}
	free := without(all, used)
	a := pick(prefix+text[:at], text[at:], free, false)
	a.List = len(free) > 1
	var names []string
	for _, i := range a.Items {
		names = append(names, strings.TrimPrefix(i.Text, prefix+text[:at]))
	}
	var folded []Item
	for _, g := range groups(names) {
		if t := hostlist.FoldSorted(g); len(g) > 1 && strings.HasPrefix(t, text[at:]) {
			folded = append(folded, Item{Text: prefix + text[:at] + t, Help: fmt.Sprintf("%d nodes", len(g))})
		}
	}
	if len(a.Items) > maxNodes {
		a.Items = a.Items[:maxNodes]
	}
	a.Items = append(a.Items, folded...)
	return a
}

// groups groups names that differ only in the number at the end.
func groups(names []string) [][]string {
	var order []string
	by := map[string][]string{}
	for _, n := range names {
		base := strings.TrimRight(n, "0123456789")
		if base == n {
			continue
		}
		if by[base] == nil {
			order = append(order, base)
		}
		by[base] = append(by[base], n)
	}
	out := make([][]string, len(order))
	for i, base := range order {
		out[i] = by[base]
	}
	return out
}

// inBracket completes the numbers of base[typed. head is the text up to the bracket.
func inBracket(head, base, typed string, all []Item) Answer {
	at := strings.LastIndexAny(typed, ",-") + 1
	done, last := typed[:at], typed[at:]
	used, err := hostlist.Expand(base + "[" + strings.TrimRight(done, ",-") + "]")
	if strings.Trim(done, ",-") == "" || err != nil {
		used = nil
	}
	a := Answer{List: true, Open: true}
	var names []string
	for _, i := range all {
		number, ok := strings.CutPrefix(i.Text, base)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		names = append(names, i.Text)
		if !strings.HasPrefix(number, last) || slices.Contains(used, i.Text) {
			continue
		}
		a.Items = append(a.Items, Item{Text: head + done + number, Help: i.Help})
		if number == last {
			a.Items = append(a.Items, Item{Text: head + done + number + "]", Help: i.Help})
		}
	}
	if typed == "" && len(names) > 1 {
		if folded := hostlist.FoldSorted(names); strings.HasPrefix(folded, base+"[") {
			a.Items = append(
				a.Items,
				Item{Text: head + folded[len(base)+1:], Help: fmt.Sprintf("%d nodes", len(names))},
			)
		}
	}
	return a
}
