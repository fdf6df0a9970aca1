package completion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// value completes text, the value at the cursor. prefix is the text before it in
// the same word.
func (c *cursor) value(d option.Domain, prefix, text string) Answer {
	switch d.Kind {
	case option.Free:
		return Answer{}
	case option.File:
		return Answer{Fallback: Files, Prefix: prefix}
	case option.Dir:
		return Answer{Fallback: Directories, Prefix: prefix}
	case option.Program:
		return Answer{Fallback: Commands, Prefix: prefix}
	case option.Nodes:
		return c.nodes(prefix, text)
	case option.Dependencies:
		return c.dependency(prefix, text)
	case option.Letters:
		return c.letters(prefix, text)
	case option.Features:
		// An expression: rack1&(a100|h100), gpu*2
		at := strings.LastIndexAny(text, "&|,()[]*") + 1
		return pick(prefix+text[:at], text[at:], c.items(d), false)
	case option.Signals:
		at := strings.LastIndexByte(text, ':') + 1
		return pick(prefix+text[:at], text[at:], c.items(d), true)
	}
	if !d.List {
		a := pick(prefix, text, c.items(d), folds(d.Kind))
		a.Describe = d.Kind == option.Jobs || d.Kind == option.Steps
		return a
	}
	at := strings.LastIndexByte(text, ',') + 1
	head, last := text[:at], text[at:]
	if d.Kind == option.SortBy && last != "" && (last[0] == '-' || last[0] == '+') {
		head, last = head+last[:1], last[1:]
	}
	items := without(c.items(d), strings.Split(text[:at], ","))
	a := pick(prefix+head, last, items, folds(d.Kind))
	a.List = len(items) > 1
	a.Describe = d.Kind == option.Jobs || d.Kind == option.Steps || d.Kind == option.Reservations
	return a
}

// folds reports whether Slurm ignores the case of such values.
func folds(k option.Kind) bool {
	return k == option.Words || k == option.JobStates || k == option.NodeStates || k == option.Fields ||
		k == option.Reports ||
		k == option.Signals
}

// without returns the items that are not in a list yet and that can be in one.
func without(items []Item, used []string) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool {
		return strings.Contains(i.Text, ",") ||
			slices.ContainsFunc(used, func(u string) bool { return strings.EqualFold(u, i.Text) })
	})
}

// pick returns the items that start with typed, each after prefix.
func pick(prefix, typed string, items []Item, fold bool) Answer {
	var a Answer
	seen := map[string]bool{}
	for _, i := range items {
		text, ok := match(typed, i.Text, fold)
		if !ok || seen[text] || !isSafe(text) {
			continue
		}
		seen[text] = true
		i.Text = prefix + text
		i.Help = printable.Escape(i.Help)
		a.Items = append(a.Items, i)
	}
	return a
}

// items returns all values of a domain.
func (c *cursor) items(d option.Domain) []Item {
	switch d.Kind {
	case option.Words:
		return plain(d.Words...)
	case option.Signals:
		return plain(value.SignalNames()...)
	case option.JobStates:
		items := plain("all")
		if c.Name == "sacct" {
			items = nil
		}
		for _, s := range status.JobStates {
			items = append(items, Item{Text: s, Help: status.JobState(s).Code()})
		}
		return items
	case option.NodeStates:
		return plain(append([]string{"all"}, format.NodeStateNames...)...)
	case option.Environment:
		return plain("ALL", "NONE", "NIL")
	case option.Fields:
		return fields(c.Name)
	case option.SortBy:
		return letters(c.Name)
	case option.Reports:
		return plain("Second", "Minute", "Hour", "Percent", "SecPer", "MinPer", "HourPer")
	}
	return c.lists(d.Kind)
}

func plain(texts ...string) []Item {
	items := make([]Item, len(texts))
	for i, t := range texts {
		items[i].Text = t
	}
	return items
}

// fields returns the names of the columns of a command's --Format or --format.
func fields(name string) []Item {
	var names []string
	switch name {
	case "squeue", "sview":
		for _, f := range format.JobColumns() {
			names = append(names, f.Name)
		}
	case "sinfo":
		for _, f := range format.NodeColumns() {
			names = append(names, f.Name)
		}
	case "sacct":
		for _, f := range format.AcctFields {
			names = append(names, f.Name)
		}
	case "sshare":
		names = option.SshareFields
	case "sacctmgr":
		names = option.SacctmgrFields
	}
	slices.Sort(names)
	return plain(slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })...)
}

// letters returns the letters of the columns of a command's --format.
func letters(name string) []Item {
	var items []Item
	add := func(letter byte, header string) {
		if letter != 0 && !slices.ContainsFunc(items, func(i Item) bool { return i.Text == string(rune(letter)) }) {
			items = append(items, Item{Text: string(rune(letter)), Help: header})
		}
	}
	switch name {
	case "squeue", "sview":
		for _, f := range format.JobColumns() {
			add(f.Letter, cmp.Or(f.Header, f.Name))
		}
	case "sinfo":
		for _, f := range format.NodeColumns() {
			add(f.Letter, cmp.Or(f.Header, f.Name))
		}
	case "sprio":
		for _, f := range format.PriorityColumns() {
			add(f.Letter, cmp.Or(f.Header, f.Name))
		}
	}
	return items
}

// letters completes "%.18i %9P": a width may follow the last %, and then
// a letter.
func (c *cursor) letters(prefix, text string) Answer {
	at := strings.LastIndexByte(text, '%')
	if at < 0 || strings.Trim(text[at+1:], "#.0123456789") != "" {
		text += "%"
	}
	a := pick(prefix+text, "", letters(c.Name), false)
	a.List, a.Describe = true, true
	return a
}

// dependency completes afterok:12:13,singleton.
func (c *cursor) dependency(prefix, text string) Answer {
	at := strings.LastIndexAny(text, ",?") + 1
	term := text[at:]
	colon := strings.LastIndexByte(term, ':')
	if colon < 0 {
		return pick(
			prefix+text[:at],
			term,
			plain("after:", "afterany:", "afterburstbuffer:", "aftercorr:", "afternotok:", "afterok:", "singleton"),
			true,
		)
	}
	a := pick(
		prefix+text[:at]+term[:colon+1],
		term[colon+1:],
		without(c.lists(option.Jobs), strings.Split(term, ":")),
		false,
	)
	a.List, a.Describe = true, true
	return a
}
