package query

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// Table is rows in columns, as data.Store holds them, so that a test examines each
// text once however many rows have it.
type Table interface {
	Texts(field string) (numbers []uint32, texts []string)
	Number(slot int32, field string) int64
	ID(slot int32) int64
	Job(slot int32) status.Job
}

// Bind returns a function that reports whether a row passes the filter. It is valid
// until the rows change; now is the time in Unix seconds.
func (q *Query) Bind(t Table, now int64) func(slot int32) bool {
	if q.Empty() {
		return func(int32) bool { return true }
	}
	tests := make([]func(int32) bool, len(q.terms))
	for i := range q.terms {
		tests[i] = q.terms[i].bind(t, now)
	}
	return func(slot int32) bool {
		for _, ok := range tests {
			if !ok(slot) {
				return false
			}
		}
		return true
	}
}

func (t *term) bind(tab Table, now int64) func(int32) bool {
	test := t.test(tab, now)
	if !t.not {
		return test
	}
	return func(slot int32) bool { return !test(slot) }
}

func (t *term) test(tab Table, now int64) func(int32) bool {
	switch {
	case t.field == nil:
		return t.testAnyField(tab)
	case t.field.kind == job:
		return func(slot int32) bool { return idMatches(tab, slot, t.text) }
	case t.field.kind == gpus:
		return textColumnTest(tab, "tres", func(s string) bool { return t.number(int64(GPUs(s))) })
	case t.number != nil:
		value := numberGetter(t.field, tab, now)
		return func(slot int32) bool { return t.number(value(slot)) }
	}
	return textColumnTest(tab, t.field.json, t.text)
}

// textColumnTest returns a test of a column of text that tests each text once.
func textColumnTest(tab Table, field string, test func(string) bool) func(int32) bool {
	numbers, texts := tab.Texts(field)
	if numbers == nil {
		ok := test("")
		return func(int32) bool { return ok }
	}
	cache := make([]int8, len(texts))
	return func(slot int32) bool { return memoized(cache, texts, numbers[slot], test) }
}

// memoized returns the result of test for text n, and caches it: 1 yes, -1 no.
func memoized(cache []int8, texts []string, n uint32, test func(string) bool) bool {
	if cache[n] == 0 {
		cache[n] = -1
		if test(texts[n]) {
			cache[n] = 1
		}
	}
	return cache[n] > 0
}

// testAnyField returns a test that holds if the term matches any searched field.
func (t *term) testAnyField(tab Table) func(int32) bool {
	var columns [][]uint32
	var texts []string
	for _, f := range searchedFields {
		var numbers []uint32
		if numbers, texts = tab.Texts(f); numbers != nil {
			columns = append(columns, numbers)
		}
	}
	cache := make([]int8, len(texts))
	// A state also matches by its short name.
	test := func(s string) bool { return t.text(s) || isState(s) && t.text(status.JobState(s).Code()) }
	return func(slot int32) bool {
		for _, c := range columns {
			if memoized(cache, texts, c[slot], test) {
				return true
			}
		}
		return idMatches(tab, slot, t.text)
	}
}

func isState(s string) bool { return len(s) > 4 && status.JobState(s).Code() != s }

func idMatches(tab Table, slot int32, test func(string) bool) bool {
	var buf [24]byte
	if test(string(strconv.AppendInt(buf[:0], tab.ID(slot), 10))) {
		return true
	}
	if array := tab.Number(slot, "arrayJobID"); array != 0 {
		j := tab.Job(slot)
		return test(string(strconv.AppendInt(buf[:0], array, 10))) || test(format.JobID(&j))
	}
	if het := tab.Number(slot, "hetJobID"); het != 0 {
		j := tab.Job(slot)
		return test(format.JobID(&j))
	}
	return false
}

// numberGetter returns a function that returns the value of a field that is a
// number.
func numberGetter(f *field, tab Table, now int64) func(int32) int64 {
	switch f.json {
	case "elapsed":
		return func(slot int32) int64 {
			j := tab.Job(slot)
			return format.Elapsed(&j, &format.Settings{Now: now})
		}
	case "age":
		return func(slot int32) int64 { return now - tab.Number(slot, "submit") }
	case "wait":
		return func(slot int32) int64 {
			if start := tab.Number(slot, "start"); start > now {
				return start - now
			}
			return 0
		}
	case "timeLimit":
		return func(slot int32) int64 {
			if n := tab.Number(slot, f.json); n >= 0 {
				return n
			}
			return 1 << 40
		}
	}
	return func(slot int32) int64 { return tab.Number(slot, f.json) }
}

// Match reports whether a row that is not a job passes the filter. get returns the
// text of a field by one of its names; words are the texts in which plain words are
// searched. A field that the row does not have never matches.
func (q *Query) Match(get func(name string) (text string, ok bool), words ...string) bool {
	if q.Empty() {
		return true
	}
	for i := range q.terms {
		if t := &q.terms[i]; t.matchRow(get, words) == t.not {
			return false
		}
	}
	return true
}

func (t *term) matchRow(get func(string) (string, bool), words []string) bool {
	if t.field == nil {
		return slices.ContainsFunc(words, t.text)
	}
	for _, name := range t.field.names {
		text, ok := get(name)
		if !ok {
			continue
		}
		if t.number == nil {
			return t.text(text)
		}
		if t.field.kind == gpus {
			return t.number(int64(GPUs(text)))
		}
		n, err := parseNumber(t.field, text)
		return err == nil && t.number(n)
	}
	return false
}

// GPUs returns the number of GPUs in a text of TRES such as cpu=4,gres/gpu=2. If
// only types are counted (gres/gpu:a100=2), it is their sum.
func GPUs(tres string) int {
	typed := 0
	for rest := tres; rest != ""; {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		name, n, _ := strings.Cut(item, "=")
		if !strings.HasPrefix(name, "gres/gpu") {
			continue
		}
		count, err := strconv.Atoi(n)
		switch {
		case err != nil:
		case name == "gres/gpu":
			return count
		case strings.HasPrefix(name, "gres/gpu:"):
			typed += count
		}
	}
	return typed
}
