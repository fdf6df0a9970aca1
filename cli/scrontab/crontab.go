package scrontab

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// entry is one job of a crontab.
type entry struct {
	line     int
	schedule string
	cron     *value.Cron
	command  string
	options  []string // of the #SCRON lines before it
	text     string   // its lines, including the comments before it
}

// parse parses a crontab: lines "MINUTE HOUR DAY MONTH WEEKDAY COMMAND" or "@daily
// COMMAND", each with the options of the "#SCRON OPTIONS" lines before it.
func parse(text string) ([]entry, error) {
	var out []entry
	var e entry
	n := 0
	for line := range strings.Lines(text) {
		n++
		e.text += line
		line = strings.TrimSpace(line)
		switch rest, scron := strings.CutPrefix(line, "#SCRON"); {
		case scron && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			e.options = append(e.options, strings.Fields(rest)...)
			continue
		case line == "", line[0] == '#':
			continue
		}
		words := 5
		if line[0] == '@' {
			words = 1
		}
		e.line = n
		e.schedule, e.command = cut(line, words)
		var err error
		if e.cron, err = value.ParseCron(e.schedule); err != nil || e.command == "" {
			return nil, slurmerr.Newf(slurmerr.Refused, "line %d is not a valid crontab line: %s", n, line)
		}
		if !strings.HasSuffix(e.text, "\n") {
			e.text += "\n"
		}
		out = append(out, e)
		e = entry{}
	}
	return out, nil
}

// cut splits a line after the given number of words.
func cut(line string, words int) (first, rest string) {
	at := 0
	for range words {
		for at < len(line) && line[at] != ' ' && line[at] != '\t' {
			at++
		}
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
	}
	return strings.TrimSpace(line[:at]), line[at:]
}
