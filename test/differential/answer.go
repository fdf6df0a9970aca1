package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// line is a line of an answer: which command printed it, on which stream.
type line struct {
	where string // "exit", "out", "err", or that of the command behind: "show"
	text  string
}

// answer is what a call printed, in normal form, and when it ran.
type answer struct {
	lines []line
	at    time.Time
}

// placeholder matches what a call names of a side: a prepared job, a user, the call's job.
var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// substitute returns the words with the names of this side's jobs and users.
func (p *pair) substitute(s *side, words []string, fresh string) []string {
	names := map[string]string{"user": p.users[0].Username, "other": p.users[1].Username, "since": s.since,
		"cluster": p.cluster}
	if fresh != "" {
		names["new"] = fresh
	}
	maps.Copy(names, s.jobs)
	names["every"] = strings.Join(slices.Sorted(maps.Values(s.jobs)), ",")
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = placeholder.ReplaceAllStringFunc(w, func(m string) string {
			if v, ok := names[m[1:len(m)-1]]; ok {
				return v
			}
			return m
		})
	}
	return out
}

// answer runs c on one side.
func (p *pair) answer(s *side, c *call) answer {
	a := answer{at: time.Now()}
	u := p.users[0]
	fresh := ""
	if c.kind == change {
		o := s.run(u, nil, "", "sbatch", "-H", "--parsable", "-b", "now+1day", "-J", "fresh", "-n2", "--wrap", "true")
		fresh = strings.TrimSpace(o.out)
	}
	script := p.substitute(s, []string{c.script()}, fresh)[0]
	o := s.run(u, p.substitute(s, c.variables(), fresh), script, c.command, p.substitute(s, c.args(), fresh)...)
	if c.kind == submit {
		fresh = newJob.FindString(o.out)
	}
	n := &normalizer{side: s, fresh: fresh, command: c.command, command2: strings.Join(c.args(), " "),
		isScript: c.isScript}
	a.add(n, "", o)
	if c.isScript {
		a.lines = scriptAnswer(a.lines)
	}
	if c.kind != query && c.kind != allocation && fresh != "" {
		show := s.run(u, nil, "", "scontrol", "show", "job", fresh)
		s.run(u, nil, "", "scancel", fresh)
		n.command, n.command2 = "scontrol", "show job"
		a.add(n, "show ", show)
	}
	return a
}

// revoked matches a line that Slurm's salloc prints or not, depending on whether the news of
// the job's end comes before it ends itself.
var revoked = regexp.MustCompile(`^salloc: Job allocation \S+ has been revoked`)

// newJob matches the id in what sbatch prints.
var newJob = regexp.MustCompile(`\d+`)

// add appends a command's output in normal form.
func (a *answer) add(n *normalizer, prefix string, o output) {
	code := "exit 0"
	if o.code != 0 {
		code = "exit " + itoa(o.code)
	}
	a.lines = append(a.lines, line{prefix + "exit", code})
	for _, l := range n.lines(o.out) {
		a.lines = append(a.lines, line{prefix + "out", l})
	}
	for _, l := range n.lines(o.err) {
		if revoked.MatchString(l) {
			continue
		}
		a.lines = append(a.lines, line{prefix + "err", l})
	}
}
