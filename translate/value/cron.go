package value

import (
	"strconv"
	"strings"
	"time"
)

// Cron is a schedule in the syntax of crontab(5), for scrontab.
type Cron struct {
	minutes, hours, days, months, weekdays uint64 // a bit for each value
	anyDay, anyWeekday                     bool
}

var cronNames = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@elevenses": "0 11 * * *",
	"@noon": "0 12 * * *", "@fika": "0 15 * * *", "@teatime": "0 16 * * *",
}

var (
	monthNames = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	dayNames   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// ParseCron parses "MINUTE HOUR DAY MONTH WEEKDAY" or a name such as @daily.
func ParseCron(text string) (*Cron, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if named, ok := cronNames[text]; ok {
		text = named
	}
	f := strings.Fields(text)
	if len(f) != 5 {
		return nil, ErrInvalid
	}
	c := &Cron{anyDay: strings.HasPrefix(f[2], "*"), anyWeekday: strings.HasPrefix(f[4], "*")}
	for i, x := range []struct {
		to        *uint64
		low, high int
		names     []string
		first     int
	}{
		{&c.minutes, 0, 59, nil, 0}, {&c.hours, 0, 23, nil, 0}, {&c.days, 1, 31, nil, 0},
		{&c.months, 1, 12, monthNames, 1}, {&c.weekdays, 0, 7, dayNames, 0},
	} {
		var err error
		if *x.to, err = cronField(f[i], x.low, x.high, x.names, x.first); err != nil {
			return nil, err
		}
	}
	if c.weekdays&(1<<7) != 0 {
		c.weekdays |= 1 // 7 is Sunday too
	}
	return c, nil
}

// cronField parses a list of values, ranges and steps.
func cronField(text string, low, high int, names []string, first int) (bits uint64, err error) {
	number := func(s string) (int, error) {
		for i, n := range names {
			if s == n {
				return i + first, nil
			}
		}
		n, err := strconv.Atoi(s)
		if err != nil || !digits(s) || n < low || n > high {
			return 0, ErrInvalid
		}
		return n, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > 60 {
				return 0, ErrInvalid
			}
		}
		from, to := low, high
		if span != "*" {
			a, b, ranged := strings.Cut(span, "-")
			if from, err = number(a); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = number(b); err != nil || to < from {
					return 0, ErrInvalid
				}
			case !stepped:
				to = from
			}
		}
		for n := from; n <= to; n += step {
			bits |= 1 << n
		}
	}
	return bits, nil
}

// Next returns the first minute of the schedule after t, in t's time zone, or the zero
// time if there is none within five years.
func (c *Cron) Next(t time.Time) time.Time {
	y, mo, d := t.Date()
	at := time.Date(y, mo, d, t.Hour(), t.Minute()+1, 0, 0, t.Location())
	for end := t.AddDate(5, 0, 0); at.Before(end); {
		y, mo, d = at.Date()
		switch {
		case c.months&(1<<mo) == 0:
			at = time.Date(y, mo+1, 1, 0, 0, 0, 0, t.Location())
		case !c.day(at):
			at = time.Date(y, mo, d+1, 0, 0, 0, 0, t.Location())
		case c.hours&(1<<at.Hour()) == 0:
			at = at.Add(time.Duration(60-at.Minute()) * time.Minute)
		case c.minutes&(1<<at.Minute()) == 0:
			at = at.Add(time.Minute)
		default:
			return at
		}
	}
	return time.Time{}
}

// day reports whether the day matches. If both day and weekday are restricted, one of
// them must match.
func (c *Cron) day(t time.Time) bool {
	day, weekday := c.days&(1<<t.Day()) != 0, c.weekdays&(1<<t.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
