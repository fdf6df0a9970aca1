package sreport

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

type conditions = keyvalue.Table[*Options]

// conditionsOf returns the words that may follow the name of a report of the
// type, in Slurm's order.
func conditionsOf(kind, report string) conditions {
	list := conditions{
		{Name: "tree", Least: 4, Form: keyvalue.Word, Set: enable(func(o *Options) *bool { return &o.tree })},
		{Name: "group", Least: 5, Form: keyvalue.Word, Set: enable(func(o *Options) *bool { return &o.group })},
		{Name: "FlatView", Least: 2, Form: keyvalue.Word, Set: enable(func(o *Options) *bool { return &o.flat })},
		{
			Name:  "PrintJobCount",
			Least: 2,
			Form:  keyvalue.Word,
			Set:   enable(func(o *Options) *bool { return &o.countJobs }),
		},
		{Name: "all_clusters", Least: 1, Form: keyvalue.Word, Set: keyvalue.Ignored[*Options]},
		{Name: "where", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*Options]},
		{
			Name:  "start",
			Least: 1,
			Form:  keyvalue.Either,
			Set:   instantIn(func(o *Options) *time.Time { return &o.start }),
		},
		{Name: "end", Least: 1, Form: keyvalue.Either, Set: instantIn(func(o *Options) *time.Time { return &o.end })},
		{Name: "format", Least: 1, Form: keyvalue.Either, Set: setFormat},
	}
	if kind == "reservation" {
		list = append(list, keyvalue.Keyword[*Options]{
			Name:  "names",
			Least: 1,
			Form:  keyvalue.Either,
			Set:   appendTo(func(o *Options) *[]string { return &o.reservations }),
		})
	}
	if report != "Utilization" || kind == "reservation" {
		users := "users"
		if kind == "cluster" && strings.Contains(strings.ToLower(report), "wckey") {
			users = "user" // as Slurm calls it for these two
		}
		list = append(list, conditions{
			{
				Name: users, Least: 1, Form: keyvalue.Either,
				Set: appendUsers,
			},
		}...)
		if users == "users" {
			list = append(list, keyvalue.Keyword[*Options]{
				Name: "accounts", Least: 1, Form: keyvalue.Either, Set: appendAccounts})
		}
	}
	switch kind {
	case "user":
		list = append(
			list,
			keyvalue.Keyword[*Options]{Name: "TopCount", Least: 1, Form: keyvalue.Either, Set: setTopCount},
		)
	case "job":
		list = append(
			list,
			keyvalue.Keyword[*Options]{Name: "grouping", Least: 1, Form: keyvalue.Either, Set: setGrouping},
		)
	}
	return append(list, conditions{
		{
			Name: "clusters", Least: 1, Form: keyvalue.Either,
			Set: appendTo(func(o *Options) *[]string { return &o.clusters }),
		},
		{
			Name:  "tres",
			Least: 2,
			Form:  keyvalue.Either,
			Set:   func(o *Options, p keyvalue.Pair) error { o.setTRES(p.Value); return nil },
		},
	}...)
}

// parseConditions parses the words after the name of a report. An unknown condition is
// printed, and makes the command fail after the report.
func (o *Options) parseConditions(report string, words []string) error {
	now := o.p.Now()
	y, m, d := now.Date()
	o.start = time.Date(y, m, d-1, 0, 0, 0, 0, now.Location())
	o.end = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	table := conditionsOf(o.kind, report)
	for _, word := range words {
		known := false
		p := keyvalue.Parse(word)
		noTRES := p.Value == "" && keyvalue.Abbreviates(p.Key, "tres", 2) // no such condition in Slurm
		if p.Op == keyvalue.Assign && !noTRES {
			var err error
			if known, err = table.Set(o, p); err != nil {
				return err
			}
		}
		if !known {
			fmt.Fprintf(&o.notes, " Unknown condition: %s\n", printable.Escape(word))
			if !o.ofWCKeys || o.kind != "cluster" {
				fmt.Fprintln(&o.notes, "Use keyword set to modify value")
			}
			o.invalidCondition = true
		}
	}
	o.roundToHours(now)
	return nil
}

func enable(field func(*Options) *bool) func(*Options, keyvalue.Pair) error {
	return func(o *Options, _ keyvalue.Pair) error {
		*field(o) = true
		return nil
	}
}

func appendTo(field func(*Options) *[]string) func(*Options, keyvalue.Pair) error {
	return func(o *Options, p keyvalue.Pair) error {
		*field(o) = append(*field(o), strings.Split(p.Value, ",")...)
		return nil
	}
}

// appendUsers adds users. As in Slurm, a report of job sizes fails if none is named, and counts
// all jobs.
func appendUsers(o *Options, p keyvalue.Pair) error {
	o.users = append(o.users, strings.Split(p.Value, ",")...)
	if o.kind == "job" && strings.Trim(p.Value, ",") == "" {
		o.invalidCondition = true
	}
	return nil
}

func appendAccounts(o *Options, p keyvalue.Pair) error {
	o.accounts = append(o.accounts, strings.Split(strings.ToLower(p.Value), ",")...)
	return nil
}

// instantIn returns a setter that parses a time. As in Slurm, an invalid time is printed
// and ignored.
func instantIn(field func(*Options) *time.Time) func(*Options, keyvalue.Pair) error {
	return func(o *Options, p keyvalue.Pair) error {
		t, err := value.PastInstant(p.Value, o.p.Now())
		if err != nil {
			fmt.Fprintln(&o.notes, invalidTime(p.Value, err))
			return nil
		}
		*field(o) = t
		return nil
	}
}

func invalidTime(text string, err error) string {
	pos := 0
	var at *value.InstantError
	if errors.As(err, &at) {
		pos = at.Pos
	}
	return fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, printable.Escape(text))
}

func setFormat(o *Options, p keyvalue.Pair) error {
	o.format, o.formatGiven = p.Value, true
	return nil
}

func setTopCount(o *Options, p keyvalue.Pair) error {
	n, err := strconv.ParseUint(p.Value, 10, 31)
	if err != nil {
		slurmerr.Print(&o.notes, "sreport", slurmerr.Newf(slurmerr.Refused, "Invalid value for TopCount (%s)", p.Value))
		o.invalidCondition = true
		return nil //nolint:nilerr // it was reported, and the report is printed all the same
	}
	o.topCount = int(n)
	return nil
}

func setGrouping(o *Options, p keyvalue.Pair) error {
	o.grouping = nil
	for text := range strings.SplitSeq(p.Value, ",") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return slurmerr.Newf(slurmerr.Refused, "Bad grouping: %s", p.Value)
		}
		o.grouping = append(o.grouping, int32(n))
	}
	slices.Sort(o.grouping)
	return nil
}

func (o *Options) setTRES(list string) {
	o.tres, o.tresTyped = strings.Split(strings.ToLower(list), ","), list
	o.tresGiven, o.tresNamed = true, !strings.EqualFold(list, "all")
}

// roundToHours rounds start and end to whole hours, up from half past on, as
// Slurm's reports do. The end is not after now, and at least an hour after the
// start.
func (o *Options) roundToHours(now time.Time) {
	round := func(t time.Time) time.Time {
		h := t.Hour()
		if t.Minute() >= 30 {
			h++
		}
		return time.Date(t.Year(), t.Month(), t.Day(), h, 0, 0, 0, t.Location())
	}
	if o.end.After(now) {
		o.end = now
	}
	o.start, o.end = round(o.start), round(o.end)
	if !o.end.After(o.start) {
		o.end = o.start.Add(time.Hour)
	}
}
