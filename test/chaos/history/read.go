package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseMarks parses a file that a job wrote: a line of key=value for each mark. An
// incomplete last line, of a task that was killed while it wrote, is ignored.
func ParseMarks(text string) ([]Mark, error) {
	var out []Mark
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		m, err := parseMark(line)
		if err != nil {
			return out, fmt.Errorf("%w in %q", err, line)
		}
		out = append(out, m)
	}
	return out, nil
}

func parseMark(line string) (Mark, error) {
	var m Mark
	numbers := map[string]*int64{
		"job": &m.Job, "array": &m.Array, "task": &m.Task, "restart": &m.Restart, "proc": &m.Proc, "pid": &m.Process,
	}
	texts := map[string]*string{
		"name": &m.Name, "user": &m.User, "node": &m.Node, "step": &m.Step, "gpus": &m.GPUs,
	}
	for i, field := range strings.Fields(line) {
		if i == 0 {
			m.Kind = field
			continue
		}
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch {
		case key == "at":
			m.At, err = parseSeconds(value)
		case key == "exit":
			m.Exit, err = strconv.Atoi(value)
		case texts[key] != nil:
			*texts[key] = value
		case numbers[key] != nil && value != "":
			*numbers[key], err = strconv.ParseInt(value, 10, 64)
		case numbers[key] == nil:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// parseSeconds parses bash's EPOCHREALTIME: seconds with six decimals.
func parseSeconds(text string) (time.Time, error) {
	whole, part, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	us, err := strconv.ParseInt(part, 10, 64)
	return time.Unix(s, us*1000), err
}

// RecordFields are the columns of sacct that ParseRecords expects.
const RecordFields = "JobIDRaw,JobID,JobName,User,State,ExitCode,Start,End"

// ParseRecords parses sacct -n -P -X -o RecordFields with times in seconds (SLURM_TIME_FORMAT=%s).
func ParseRecords(text string) ([]Record, error) {
	var out []Record
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != strings.Count(RecordFields, ",")+1 {
			return nil, fmt.Errorf("%d columns in %q", len(f), line)
		}
		id, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, line)
		}
		r := Record{ID: id, Name: f[2], User: f[3], State: f[4], Start: unix(f[6]), End: unix(f[7])}
		code, _, _ := strings.Cut(f[5], ":")
		r.Exit, _ = strconv.Atoi(code)
		if own, tasks, ok := strings.Cut(f[1], "_"); ok {
			if r.Array, err = strconv.ParseInt(own, 10, 64); err != nil {
				return nil, fmt.Errorf("%w in %q", err, line)
			}
			if r.Tasks, err = parseTasks(tasks); err != nil {
				return nil, fmt.Errorf("%w in %q", err, line)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// unix parses seconds since 1970; anything else, such as Unknown, is the zero time.
func unix(text string) time.Time {
	s, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

// parseTasks parses the tasks of an array: "3", or "[1-4,7%2]".
func parseTasks(text string) ([]int, error) {
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	numbers, err := ParseNumbers(text)
	out := make([]int, len(numbers))
	for i, n := range numbers {
		out[i] = int(n)
	}
	return out, err
}

// ParseNumbers parses a list such as "0-3,8".
func ParseNumbers(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	var out []int64
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		first, err := strconv.ParseInt(low, 10, 64)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseInt(high, 10, 64)
		if err != nil || last-first > 1<<20 {
			return nil, fmt.Errorf("%q is not a list of numbers", text)
		}
		for n := first; n <= last; n++ {
			out = append(out, n)
		}
	}
	return out, nil
}

// ParseQueue parses squeue -h -o "%A|%j|%T|%r".
func ParseQueue(text string) ([]Row, error) {
	var out []Row
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			return nil, fmt.Errorf("%d columns in %q", len(f), line)
		}
		id, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, line)
		}
		out = append(out, Row{id, f[1], f[2], f[3]})
	}
	return out, nil
}
