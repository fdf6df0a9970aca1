package value

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// InstantError is an error about the syntax of a time. Pos is the offset of the error in
// bytes, or -1.
type InstantError struct{ Pos int }

func (e *InstantError) Error() string { return fmt.Sprintf("invalid time (pos=%d)", e.Pos) }

// Instant parses a time of --begin and --deadline, in the time zone of now:
// now[+COUNT[UNIT]], today, tomorrow, midnight, noon, fika, teatime,
// HH:MM[:SS][am|pm], MMDD[YY], MM/DD[/YY], MM.DD.YY, YYYY-MM-DD[THH:MM[:SS]],
// dates and times of day in either order, and uts followed by Unix seconds. A time of
// day without a date is in the next 24 hours. The error is an *InstantError, or
// ErrInvalid for an empty text.
func Instant(s string, now time.Time) (time.Time, error) {
	return parseInstant(s, now, false)
}

// PastInstant is Instant for times in the past (sacct -S): a time without a date is
// today, and a date without a year is in this year, even if that is before now.
func PastInstant(s string, now time.Time) (time.Time, error) {
	return parseInstant(s, now, true)
}

// parseInstant parses a time as Instant does, or as PastInstant if past is true.
func parseInstant(s string, now time.Time, past bool) (time.Time, error) {
	if s == "" {
		return time.Time{}, ErrInvalid
	}
	r := &instantReader{text: lowerASCII(s), capitals: strings.Contains(s, "T"), now: now, past: past}
	if strings.HasPrefix(r.text, "uts") && digits(r.text[3:]) {
		n, err := strconv.ParseInt(r.text[3:], 10, 64)
		if err != nil {
			return time.Time{}, &InstantError{0}
		}
		return time.Unix(n, 0).In(now.Location()), nil
	}
	for r.pos < len(r.text) {
		if !r.item() {
			return time.Time{}, &InstantError{r.pos}
		}
	}
	return r.result()
}

// lowerASCII returns s with small letters, byte for byte.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// instantReader parses the parts of a time.
type instantReader struct {
	text string // in small letters
	// capitals: a t of text is a capital one.
	capitals bool

	pos  int
	now  time.Time
	past bool

	absolute *time.Time // now+N: the other parts are ignored
	haveDate bool
	noYear   bool
	date     [3]int // year, month, day
	haveTime bool
	clock    [3]int
}

func (r *instantReader) rest() string { return r.text[r.pos:] }

// item parses one part; it returns false if there is no valid part at pos.
func (r *instantReader) item() bool {
	switch c := r.text[r.pos]; {
	case strings.IndexByte(" \t\n-", c) >= 0, c == 't' && r.separatesTime():
		r.pos++
		return true
	case isDigit(c):
		return r.numeric()
	}
	return r.word()
}

// separatesTime reports whether the t at pos stands between a date and a time of day. As in
// Slurm, a capital one may stand anywhere.
func (r *instantReader) separatesTime() bool {
	rest := r.rest()
	for _, word := range []string{"today", "tomorrow", "teatime"} {
		if strings.HasPrefix(rest, word) {
			return false
		}
	}
	return r.capitals || r.haveDate && len(rest) > 1 && isDigit(rest[1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// word parses a named day or time of day.
func (r *instantReader) word() bool {
	rest := r.rest()
	y, m, d := r.now.Date()
	switch {
	case r.accept("now"):
		if start := r.pos - len("now"); start > 0 { // Slurm counts what comes before it twice
			r.pos = 2*start + len("now")
			return false
		}
		return r.delta()
	case r.accept("today"):
		r.haveDate, r.date = true, [3]int{y, int(m), d}
	case r.accept("tomorrow"):
		next := time.Date(y, m, d+1, 0, 0, 0, 0, r.now.Location())
		r.haveDate, r.date = true, [3]int{next.Year(), int(next.Month()), next.Day()}
	case r.accept("midnight"):
		r.haveTime, r.clock = true, [3]int{}
	case r.accept("noon"):
		r.haveTime, r.clock = true, [3]int{12}
	case r.accept("fika"):
		r.haveTime, r.clock = true, [3]int{15}
	case r.accept("teatime"):
		r.haveTime, r.clock = true, [3]int{16}
	default:
		return false
	}
	return len(rest) > 0
}

// accept skips word if it is at pos, and reports whether it was.
func (r *instantReader) accept(word string) bool {
	if !strings.HasPrefix(r.rest(), word) {
		return false
	}
	r.pos += len(word)
	return true
}

var deltaUnits = []struct {
	name    string
	seconds int64
}{{"seconds", 1}, {"second", 1}, {"minutes", 60}, {"minute", 60}, {"hours", 3600}, {"hour", 3600},
	{"days", 86400}, {"day", 86400}, {"weeks", 604800}, {"week", 604800}}

// delta parses the text after "now": [+|-]COUNT[UNIT].
func (r *instantReader) delta() bool {
	rest := strings.TrimLeft(r.rest(), " ")
	start := len(r.text) - len(rest)
	if rest == "" {
		r.pos = len(r.text)
		at := r.now
		r.absolute = &at
		return true
	}
	sign := int64(1)
	switch rest[0] {
	case '+':
	case '-':
		sign = -1
	default:
		return false
	}
	rest = strings.TrimLeft(rest[1:], " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	unit := strings.Trim(rest[end:], blanks)
	seconds := int64(0)
	if unit == "" {
		seconds = 1
	}
	for _, u := range deltaUnits {
		if unit == u.name {
			seconds = u.seconds
		}
	}
	if err != nil || seconds == 0 || n > 1<<40 {
		r.pos = start + end // Slurm's position is that of the last digit
		return false
	}
	r.pos = len(r.text)
	at := r.now.Add(time.Duration(sign*n*seconds) * time.Second)
	if n*seconds > 1<<33 {
		at = time.Unix(r.now.Unix()+sign*n*seconds, 0).In(r.now.Location())
	}
	r.absolute = &at
	return true
}

// numeric parses a date or a time of day, depending on the character after the first
// digits.
func (r *instantReader) numeric() bool {
	rest := r.rest()
	has := func(i int, c byte) bool { return i < len(rest) && rest[i] == c }
	switch {
	case has(1, ':'), has(2, ':'):
		return r.timeOfDay()
	case has(4, '-') && has(7, '-'):
		return r.isoDate()
	}
	return r.monthFirst()
}

// number parses one to width digits; ok is false if there are none.
func (r *instantReader) number(width int) (n int, ok bool) {
	for ; width > 0 && r.pos < len(r.text) && r.text[r.pos] >= '0' && r.text[r.pos] <= '9'; width-- {
		n = n*10 + int(r.text[r.pos]-'0')
		r.pos++
		ok = true
	}
	return n, ok
}

func (r *instantReader) timeOfDay() bool {
	start := r.pos
	hour, ok := r.number(2)
	if !ok || r.haveTime || !r.accept(":") {
		return false
	}
	minuteAt := r.pos
	minute, ok := r.number(2)
	if !ok || minute > 59 || r.pos-minuteAt != 2 || r.pos < len(r.text) && isDigit(r.text[r.pos]) {
		r.pos = min(minuteAt+1, len(r.text))
		if minute > 59 {
			r.pos = minuteAt
		}
		return false
	}
	second := 0
	if r.accept(":") {
		if second, ok = r.number(2); !ok || second > 59 {
			return false
		}
	}
	pm := r.accept("pm")
	am := !pm && r.accept("am")
	if (am || pm) && (hour < 1 || hour > 12) || hour > 23 {
		r.pos = start
		return false
	}
	if am || pm {
		hour %= 12
	}
	if pm {
		hour += 12
	}
	r.haveTime, r.clock = true, [3]int{hour, minute, second}
	return true
}

// isoDate parses YYYY-MM-DD, where the day may have one digit.
func (r *instantReader) isoDate() bool {
	start := r.pos
	year, _ := r.number(4)
	if !r.accept("-") {
		r.pos = start
		return false
	}
	monthAt := r.pos
	month, _ := r.number(2)
	if r.pos-monthAt != 2 || !r.accept("-") {
		r.pos = monthAt + 2
		return false
	}
	if month > 12 || month < 1 {
		r.pos = monthAt
		return false
	}
	dayAt := r.pos
	day, ok := r.number(2)
	if !ok || !r.setDate(year, month, day) {
		r.pos = dayAt
		return false
	}
	return true
}

// monthFirst parses MMDD[YY], or MM/DD[/[YY]] with slashes or dots. Month and day may have
// one digit.
func (r *instantReader) monthFirst() bool {
	start := r.pos
	month, _ := r.number(2)
	if month < 1 || month > 12 {
		if r.pos = start; month == 0 {
			r.pos-- // as Slurm reports it
		}
		return false
	}
	separated := r.accept("/") || r.accept(".")
	dayAt := r.pos
	day, ok := r.number(2)
	if !ok || day < 1 || day > 31 {
		r.pos = dayAt
		return false
	}
	year, dated := 0, false
	if !separated || r.accept("/") || r.accept(".") {
		year, dated = r.number(2)
	}
	if dated {
		year += 2000
	}
	if !r.monthDay(year, month, day, dated) {
		r.pos = start
		return false
	}
	return true
}

func (r *instantReader) monthDay(year, month, day int, dated bool) bool {
	if !dated {
		r.noYear = true
		year = r.now.Year()
	}
	return r.setDate(year, month, day)
}

func (r *instantReader) setDate(year, month, day int) bool {
	if r.haveDate || month < 1 || month > 12 || day < 1 || day > 31 {
		return false
	}
	r.haveDate, r.date = true, [3]int{year, month, day}
	return true
}

// result combines the parts. If the date or the year is missing, the result is not before
// now, unless r.past is set.
func (r *instantReader) result() (time.Time, error) {
	if r.absolute != nil {
		return *r.absolute, nil
	}
	if !r.haveDate && !r.haveTime {
		return time.Time{}, ErrInvalid
	}
	at := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, r.clock[0], r.clock[1], r.clock[2], 0, r.now.Location())
	}
	if r.haveDate {
		t := at(r.date[0], r.date[1], r.date[2])
		if r.noYear && !r.past && t.Before(r.now) {
			t = at(r.date[0]+1, r.date[1], r.date[2])
		}
		return t, nil
	}
	y, m, d := r.now.Date()
	t := at(y, int(m), d)
	if !r.past && t.Before(r.now) {
		t = at(y, int(m), d+1)
	}
	return t, nil
}
