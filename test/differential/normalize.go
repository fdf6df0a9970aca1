package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// normalizer replaces what two systems cannot share: ids of jobs, priorities, facts of the
// machine. Times stay; alignTimes compares them.
type normalizer struct {
	side              *side
	fresh             string // id of the call's own job
	command, command2 string // the command and its arguments
	isScript          bool   // the call has a made script, with numbers like those of jobs
}

var (
	number = regexp.MustCompile(`\d+`)
	// afterJob matches ids of jobs that are not known: of --test-only and the like.
	afterJob = regexp.MustCompile(`((?i:job(?:id)?)[ =]|allocation )\d{3,}\b`)
	// record starts a KEY=VALUE of scontrol show.
	record = regexp.MustCompile(` +([A-Z][A-Za-z0-9/:]*=)`)
	// hostFacts are keys of scontrol show whose values belong to the machine or to the moment.
	hostFacts = regexp.MustCompile(`^(BootTime|SlurmdStartTime|LastBusyTime|CPULoad|FreeMem|OS|Version|Port|NodeAddr|` +
		`NodeHostName|Priority|LastSchedEval|AllocNode:Sid|SrunHost:Pid|TmpDisk|BatchHost|AccrueTime|Scheduler)=.*`)
	digits = regexp.MustCompile(`\d+(\.\d+)?|\binf\b`)
	spaces = regexp.MustCompile(`  +|-{3,}`)
)

// usageRow matches the row of a report by its figures.
var usageRow = regexp.MustCompile(`(^| )ref .*\d|\|.*\d`)

// usageCommands print figures of usage.
var usageCommands = map[string]bool{"sprio": true, "sshare": true, "sstat": true, "sreport": true}

// lines returns the lines of text in normal form. The records of scontrol show become one
// line for each key.
func (n *normalizer) lines(text string) []string {
	if text == "" {
		return nil
	}
	if strings.Contains(text, "scontrol [<OPTION>] [<COMMAND>]") {
		return []string{"the text of --help"}
	}
	var out []string
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		l = strings.ReplaceAll(l, n.side.bin+"/", "")
		if n.command == "scontrol" && strings.Contains(n.command2, "sh") {
			out = append(out, n.record(l)...)
			continue
		}
		if n.command != "sacctmgr" && !n.isScript { // it shows no jobs, but ids of TRES
			l = n.ids(l)
		}
		if n.command == "sreport" && usageRow.MatchString(l) {
			continue
		}
		if usageCommands[n.command] {
			l = spaces.ReplaceAllString(digits.ReplaceAllString(l, "#"), " ")
		}
		out = append(out, l)
	}
	if n.command == "sacct" { // the order is that of the seconds in which the jobs were submitted
		slices.Sort(out)
	}
	return out
}

// record splits a line of scontrol show at its keys.
func (n *normalizer) record(l string) []string {
	var out []string
	for f := range strings.SplitSeq(record.ReplaceAllString(l, "\n$1"), "\n") {
		if f == "" || strings.HasPrefix(f, "SchedNodeList=") { // there is one only once the job is planned
			continue
		}
		out = append(out, n.ids(hostFacts.ReplaceAllString(f, "$1=*")))
	}
	return out
}

// ids replaces the ids of jobs by words. Those of the prepared jobs, which lists show, are
// as long as the ids, so that columns keep their widths. The words for jobs of the call
// itself do not depend on how many jobs a system had before.
func (n *normalizer) ids(l string) string {
	var b strings.Builder
	last := 0
	for _, m := range number.FindAllStringIndex(l, -1) {
		if m[0] > 0 && isWord(l[m[0]-1]) || m[1] < len(l) && l[m[1]] != '_' && l[m[1]] != '.' && isWord(l[m[1]]) {
			continue
		}
		b.WriteString(l[last:m[0]])
		b.WriteString(n.id(l[m[0]:m[1]]))
		last = m[1]
	}
	l = b.String() + l[last:]
	return afterJob.ReplaceAllString(l, "${1}JOB")
}

// isWord reports whether c belongs to a word that a number may be a part of.
func isWord(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// id returns the word of a job's id, or the number if it is none.
func (n *normalizer) id(id string) string {
	if id == n.fresh {
		return "NEW"
	}
	for i, q := range queue {
		if n.side.jobs[q.name] == id {
			return padded("J"+itoa(i), len(id))
		}
	}
	v, err := strconv.Atoi(id)
	if err != nil {
		return id
	}
	if base, err := strconv.Atoi(n.fresh); err == nil && v > base && v < base+4 {
		return "N+" + itoa(v-base)
	}
	if base, err := strconv.Atoi(n.side.jobs["het"]); err == nil && v == base+1 {
		return padded("H+1", len(id))
	}
	return id
}

// padded returns s with underscores up to a width.
func padded(s string, width int) string { return s + strings.Repeat("_", max(0, width-len(s))) }

var (
	instant  = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\b`)
	duration = regexp.MustCompile(`\b(\d+-)?(\d+:)?\d+:\d\d\b`)
)

// Two answers are not of the same moment: instants and durations that are this close to
// one another count as equal.
const (
	instantTolerance  = 60 * time.Second
	durationTolerance = 12 * time.Second
)

// alignTimes replaces each instant and duration of b by one of a that is close to it.
func alignTimes(a, b []line) {
	snap(a, b, instant, instantTolerance, func(s string) (time.Duration, bool) {
		t, err := time.Parse("2006-01-02T15:04:05", s)
		return time.Duration(t.Unix()) * time.Second, err == nil
	})
	snap(a, b, duration, durationTolerance, parseDuration)
}

func snap(a, b []line, pattern *regexp.Regexp, tolerance time.Duration, parse func(string) (time.Duration, bool)) {
	known := map[string]time.Duration{}
	for _, l := range a {
		for _, m := range pattern.FindAllString(l.text, -1) {
			if d, ok := parse(m); ok {
				known[m] = d
			}
		}
	}
	for i := range b {
		b[i].text = pattern.ReplaceAllStringFunc(b[i].text, func(m string) string {
			d, ok := parse(m)
			if _, same := known[m]; !ok || same {
				return m
			}
			best, near := m, tolerance
			for text, k := range known {
				if diff := (k - d).Abs(); len(text) == len(m) && (diff < near || diff == near && text < best) {
					best, near = text, diff
				}
			}
			return best
		})
	}
}

// parseDuration parses [D-][HH:]MM:SS.
func parseDuration(s string) (time.Duration, bool) {
	days, rest, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, rest = "0", s
	}
	total, err := strconv.Atoi(days)
	if err != nil {
		return 0, false
	}
	total *= 24 // only with hours behind
	for i, f := range strings.Split(rest, ":") {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, false
		}
		if i > 0 {
			total *= 60
		}
		total += n
	}
	return time.Duration(total) * time.Second, true
}
