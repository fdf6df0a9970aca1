// Package query is the filter language of the terminal UI: words that occur
// anywhere in a row (train), fields with values (user:anna st:PD,R), numbers
// (gpu>=4 time>2h), regular expressions (/^run_[0-9]+$/), and ! before any of them
// for rows that do not match. A row passes if all terms match.
package query

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Query is a filter. Every row passes the zero value. A Query never changes and is
// safe for concurrent use.
type Query struct {
	text  string
	terms []term
}

// Text returns the text from which the filter was parsed.
func (q *Query) Text() string {
	if q == nil {
		return ""
	}
	return q.text
}

// Empty reports whether every row passes.
func (q *Query) Empty() bool { return q == nil || len(q.terms) == 0 }

type term struct {
	not    bool
	field  *field           // nil: any of searchedFields
	number func(int64) bool // of fields that are numbers
	text   func(string) bool
}

// kind is how the values of a field are compared.
type kind uint8

const (
	whole  kind = iota // : means the whole value, * stands for anything
	part               // : means any part of the value
	nodes              // a folded list of nodes, : means one of them
	state              // a state's long or short name
	number             // a count
	memory             // MiB
	span               // seconds
	minute             // minutes, -1: without limit
	gpus               // counted in the text of TRES
	job                // job, array and component ids
)

type field struct {
	names []string
	json  string // the member of status.Job
	kind  kind
}

// fields are the fields that a filter can name. Messages use the first name.
var fields = []field{
	{[]string{"user", "u"}, "user", whole},
	{[]string{"st", "state", "t"}, "state", state},
	{[]string{"part", "partition", "p"}, "partition", whole},
	{[]string{"name", "n"}, "name", part},
	{[]string{"account", "acct", "a"}, "account", whole},
	{[]string{"qos", "q"}, "qos", whole},
	{[]string{"reason", "r"}, "reason", part},
	{[]string{"node", "nodelist", "w"}, "nodeList", nodes},
	{[]string{"dep", "dependency"}, "dependency", part},
	{[]string{"resv", "reservation"}, "reservation", whole},
	{[]string{"id", "job", "j"}, "id", job},
	{[]string{"gpu", "gpus"}, "tres", gpus},
	{[]string{"cpu", "cpus"}, "cpus", number},
	{[]string{"nodes"}, "nodes", number},
	{[]string{"prio", "priority"}, "priority", number},
	{[]string{"mem", "memory"}, "minMemory", memory},
	{[]string{"time", "elapsed"}, "elapsed", span},
	{[]string{"limit", "timelimit"}, "timeLimit", minute},
	{[]string{"age"}, "age", span},
	{[]string{"wait"}, "wait", span},
}

// searchedFields are the fields in which a plain word is searched, beside the id.
var searchedFields = []string{"name", "user", "partition", "state", "account", "reason", "nodeList"}

// Names returns the names of the fields, for help and completion.
func Names() []string {
	var out []string
	for i := range fields {
		out = append(out, fields[i].names[0])
	}
	return out
}

// Fields returns the JSON names of the fields of status.Job that filters read.
func Fields() []string {
	return []string{
		"id", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset", "name", "user", "partition", "state", "account",
		"reason", "nodeList", "qos", "dependency", "reservation", "tres", "cpus", "nodes", "priority", "minMemory",
		"timeLimit", "submit", "start", "end", "suspendTime", "preSuspend",
	}
}

// Parse parses a filter.
func Parse(text string) (*Query, error) {
	q := &Query{text: text}
	for rest := strings.TrimLeft(text, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		t, after, err := parseTerm(rest)
		if err != nil {
			return nil, err
		}
		if t != nil {
			q.terms = append(q.terms, *t)
		}
		rest = after
	}
	return q, nil
}

// parseTerm parses the first term of text; t is nil if it is still incomplete.
func parseTerm(text string) (t *term, rest string, err error) {
	t = &term{}
	if strings.HasPrefix(text, "!") {
		t.not, text = true, text[1:]
	}
	if strings.HasPrefix(text, "/") {
		return t.parseRegexp(text[1:])
	}
	word, rest := nextWord(text)
	if word == "" {
		return nil, rest, nil
	}
	at := strings.IndexAny(word, ":=<>~!")
	if at <= 0 {
		t.text = wordTest(word)
		return t, rest, nil
	}
	f := fieldByName(word[:at])
	op := word[at : at+1]
	value := word[at+1:]
	if f == nil {
		if op == ":" && word[0] >= '0' && word[0] <= '9' { // 12:30:00 is a plain word
			t.text = wordTest(word)
			return t, rest, nil
		}
		return nil, "", fmt.Errorf(
			"no field is called %q; there are %s",
			printable.Escape(word[:at]),
			strings.Join(Names(), " "),
		)
	}
	if strings.HasPrefix(value, "=") && op != ":" && op != "~" {
		op, value = op+"=", value[1:]
	}
	if op == "!" {
		return nil, "", fmt.Errorf("%s!: write !%s:VALUE or %s!=VALUE", f.names[0], f.names[0], f.names[0])
	}
	if op == "!=" {
		t.not, op = !t.not, "="
	}
	t.field = f
	if value == "" {
		return nil, rest, nil // being typed
	}
	return t, rest, t.compile(op, strings.Trim(value, `"`))
}

// parseRegexp parses /.../ after its first slash.
func (t *term) parseRegexp(text string) (*term, string, error) {
	end := strings.Index(text, "/")
	rest := ""
	if end >= 0 {
		text, rest = text[:end], text[end+1:]
	}
	if text == "" {
		return nil, rest, nil
	}
	re, err := compileRegexp(text)
	if err != nil {
		return nil, "", err
	}
	t.text = re.MatchString
	return t, rest, nil
}

func compileRegexp(text string) (*regexp.Regexp, error) {
	flags := "(?i)"
	if strings.ToLower(text) != text {
		flags = ""
	}
	re, err := regexp.Compile(flags + text)
	if err != nil {
		why, _ := strings.CutPrefix(err.Error(), "error parsing regexp: ")
		return nil, fmt.Errorf("/%s/: %s", printable.Escape(text), printable.Escape(why))
	}
	return re, nil
}

// nextWord splits text at the first space outside quotes. An open quote at the end
// is one that is still being typed.
func nextWord(text string) (word, rest string) {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ' ' && !quoted:
			return text[:i], text[i:]
		}
	}
	return text, ""
}

func fieldByName(name string) *field {
	for i := range fields {
		if slices.Contains(fields[i].names, strings.ToLower(name)) {
			return &fields[i]
		}
	}
	return nil
}

// wordTest returns the test for a plain word: the text contains it, in either
// case. With ~ in front, the text contains its letters in this order.
func wordTest(word string) func(string) bool {
	word = strings.ToLower(strings.Trim(word, `"`))
	if rest, ok := strings.CutPrefix(word, "~"); ok && rest != "" {
		return func(s string) bool { return inOrder(strings.ToLower(s), rest) }
	}
	return func(s string) bool { return containsFold(s, word) }
}

// containsFold is strings.Contains for ASCII letters of either case; lower must be
// in lower case.
func containsFold(s, lower string) bool {
	if lower == "" {
		return true
	}
	for i := 0; i+len(lower) <= len(s); i++ {
		n := 0
		for n < len(lower) && fold(s[i+n]) == lower[n] {
			n++
		}
		if n == len(lower) {
			return true
		}
	}
	return false
}

func fold(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func inOrder(s, letters string) bool {
	for _, r := range letters {
		at := strings.IndexRune(s, r)
		if at < 0 {
			return false
		}
		s = s[at+len(string(r)):]
	}
	return true
}

// compile sets the test for an operator and a value.
func (t *term) compile(op, value string) (err error) {
	f := t.field
	if op == "~" {
		re, err := compileRegexp(value)
		if err != nil {
			return err
		}
		t.text = re.MatchString
		return rejectNumberField(f)
	}
	if f.kind >= number && f.kind != job {
		t.number, err = compareNumber(f, op, value)
		return err
	}
	if op != ":" && op != "=" {
		return fmt.Errorf("%s is not a number: write %s:VALUE", f.names[0], f.names[0])
	}
	switch {
	case f.kind == state:
		t.text, err = stateTest(value)
	case f.kind == nodes:
		t.text, err = nodeTest(value)
	case f.kind == part && op == ":":
		t.text = anyOf(value, func(v string) func(string) bool {
			return func(s string) bool { return containsFold(s, v) }
		})
	default:
		t.text = anyOf(value, glob)
	}
	return err
}

func rejectNumberField(f *field) error {
	if f.kind >= number && f.kind != job {
		return fmt.Errorf("%s is a number: write %s>=VALUE", f.names[0], f.names[0])
	}
	return nil
}

// anyOf returns a test that holds if the test for one of the comma-separated values
// does.
func anyOf(value string, newTest func(lower string) func(string) bool) func(string) bool {
	var tests []func(string) bool
	for v := range strings.SplitSeq(strings.ToLower(value), ",") {
		if v != "" {
			tests = append(tests, newTest(v))
		}
	}
	return func(s string) bool {
		return slices.ContainsFunc(tests, func(t func(string) bool) bool { return t(s) })
	}
}

// glob returns a test for a whole value, in which * stands for any text.
func glob(pattern string) func(string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return func(s string) bool { return strings.EqualFold(s, pattern) }
	}
	return func(s string) bool {
		s = strings.ToLower(s)
		first, last := parts[0], parts[len(parts)-1]
		if !strings.HasPrefix(s, first) || len(s) < len(first)+len(last) || !strings.HasSuffix(s, last) {
			return false
		}
		s = s[len(first) : len(s)-len(last)]
		for _, p := range parts[1 : len(parts)-1] {
			at := strings.Index(s, p)
			if at < 0 {
				return false
			}
			s = s[at+len(p):]
		}
		return true
	}
}

func stateTest(value string) (func(string) bool, error) {
	var states []string
	for v := range strings.SplitSeq(value, ",") {
		if v == "" {
			continue
		}
		// While a long name is being typed, every state that starts with it matches.
		name, ok := status.ParseJobState(v)
		if ok {
			states = append(states, name)
			continue
		}
		n := len(states)
		for _, s := range status.JobStates {
			if strings.HasPrefix(s, strings.ToUpper(v)) {
				states = append(states, s)
			}
		}
		if len(states) == n {
			return nil, fmt.Errorf("no state is called %q", printable.Escape(v))
		}
	}
	return func(s string) bool { return slices.Contains(states, s) }, nil
}

func nodeTest(value string) (func(string) bool, error) {
	wanted, err := hostlist.Expand(value)
	if hostlist.IsOpen(err) { // it is being typed
		lower := strings.ToLower(value)
		return func(s string) bool { return containsFold(s, lower) }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node: %q is not a list of nodes", printable.Escape(value))
	}
	return func(s string) bool {
		if s == "" {
			return false
		}
		list, err := hostlist.Expand(s)
		return err == nil && slices.ContainsFunc(wanted, func(w string) bool {
			return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, w) })
		})
	}, nil
}
