package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// only is a part of the names of the rows to measure; "": all of them.
var only string

// row is a line of the table.
type row struct {
	name   string
	format string // of a number
	pass   string // the goal; "": none
	turns  int    // measurements of each server
	f      func(*target) (float64, error)
	alone  bool // only the login node is measured
}

func (r *rig) rows() []row {
	count := strconv.Itoa
	return []row{
		{
			name: "L1 logins/s, " + count(clients) + " at a time, no session", format: "%.0f",
			pass: "400/s, 4 times sshd's", turns: turns,
			f: func(t *target) (float64, error) { return r.rate(t, "") },
		},
		{
			name: "L1 login and `true`/s, " + count(clients) + " at a time", format: "%.0f",
			pass: "150/s, 2 times sshd's", turns: turns,
			f: func(t *target) (float64, error) { return r.rate(t, "true") },
		},
		{name: "one login alone, ms (median)", format: "%.1f", turns: turns, f: r.latency},
		{
			name: "L2 login at " + count(background) + "/s, ms (99th percentile)", format: "%.1f", pass: "150",
			turns: turns, f: r.underLoad,
		},
		{
			name:   "L2 login beside " + count(silent) + " peers that never log in, ms (99th percentile)",
			format: "%.1f", pass: "1,000", turns: 1, f: r.underAttack, alone: true,
		},
		{
			name:   "L4 key to echo beside " + count(flooders) + " terminals of 1 MB/s, ms (99th percentile)",
			format: "%.1f", pass: "100", turns: 1, f: r.fairness,
		},
		{name: "L6 download through exec, MB/s", format: "%.0f", pass: "sshd's", turns: turns, f: r.bulk},
		{name: "L6 sftp put, MB/s", format: "%.0f", pass: "0.8 times sshd's", turns: turns, f: r.upload},
		{name: "L6 sftp get, MB/s", format: "%.0f", pass: "0.8 times sshd's", turns: turns, f: r.download},
		{
			name: "L6 upload to a command by OpenSSH's client, MB/s", format: "%.0f", pass: "sshd's", turns: turns,
			f: r.stream,
		},
		{
			name: "L6 rsync of small files, files/s", format: "%.0f", pass: "0.8 times sshd's", turns: turns,
			f: r.smallFiles,
		},
		{
			name: "L7 " + count(flows) + " forwarded connections of " + count(flowSize>>10) +
				" KiB at once, MB/s, none reset",
			format: "%.0f", pass: "every byte", turns: turns, f: r.forwards,
		},
		{
			name: "a known user's refusal beside an unknown one's, % longer", format: "%.0f", pass: "20", turns: 1,
			f: r.enumeration,
		},
		{
			name:   "memory of an idle terminal session in the server, kB (PSS, " + count(idle) + " of them)",
			format: "%.0f", turns: 1, f: r.memory,
		},
		{name: "threads of the server for " + count(idle) + " idle terminals", format: "%.0f", turns: 1, f: r.threads},
		{
			name: "L3 memory of one of " + count(many) + " idle terminals, kB", format: "%.0f", pass: "150",
			turns: 1, f: r.manyMemory, alone: true,
		},
		{
			name: "L3 threads for them, more than without", format: "%.0f", pass: "100", turns: 1,
			f: func(*target) (float64, error) { return max(0, r.many.threads), nil }, alone: true,
		},
		{
			name: "L3 descriptors left when they have gone", format: "%.0f", pass: "0", turns: 1,
			f: func(*target) (float64, error) { return r.many.files, nil }, alone: true,
		},
		{
			name: "L3 memory left of opening them once more, % of the first time's peak", format: "%.0f",
			pass: "20", turns: 1, f: r.manyAgain, alone: true,
		},
		{
			name: "L8 descriptors left of a soak of " + soak.String() + ", " + count(soakRate) +
				" logins/s, every third client killed",
			format: "%.0f", pass: "0", turns: 1, f: r.soak, alone: true,
		},
		{
			name: "L8 processes left of that soak", format: "%.0f", pass: "0", turns: 1,
			f: func(*target) (float64, error) { return r.soaked.processes, nil }, alone: true,
		},
		{
			name: "L8 goroutines left of that soak", format: "%.0f", pass: "0", turns: 1,
			f: func(*target) (float64, error) { return r.soaked.goroutines, nil }, alone: true,
		},
		{
			name: "L8 memory of the server before that soak, MB", format: "%.1f", turns: 1,
			f: func(*target) (float64, error) { return r.soaked.before, nil }, alone: true,
		},
		{
			name: "L8 memory of the server after that soak, MB", format: "%.1f", pass: "as before", turns: 1,
			f: func(*target) (float64, error) { return r.soaked.after, nil }, alone: true,
		},
		{
			name: "L5 sessions of one connection before one is refused", format: "%.0f", pass: "64", turns: 1,
			f: r.perConnection, alone: true,
		},
		{name: "L9 time from SIGTERM until not ready, ms; then logins are refused, terminals get the message, sessions continue",
			format: "%.1f", pass: "at once", turns: 1, f: r.drain, alone: true},
		{
			name: "L10 first login to a user's pod (a process here), ms", format: "%.0f", pass: "its start and 300",
			turns: 1, f: r.coldPod, alone: true,
		},
		{
			name:   "L10 login and `true` in a user's running pod, ratio to that without pods (median)",
			format: "%.2f", pass: "1.3", turns: 1, f: r.warmPod, alone: true,
		},
	}
}

// table measures all rows and returns the table, in which failed rows are marked.
func (r *rig) table() (string, error) {
	var out strings.Builder
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Print(text)
		out.WriteString(text)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	line("| what | login node | sshd | ratio | to pass |\n|---|---|---|---|---|\n")
	var failed error
	for _, w := range r.rows() {
		if !strings.Contains(w.name, only) {
			continue
		}
		text, err := r.measure(&w)
		failed = errors.Join(failed, err)
		line("| %s | %s | %s |\n", w.name, text, w.pass)
	}
	line("\nMeasured with %d CPUs, Linux %s, load %s before.\n", runtime.NumCPU(),
		strings.TrimSpace(string(kernel)), strings.Fields(string(load) + " ?")[0])
	return out.String(), failed
}

// measure runs the measurements of a row and returns its cells.
func (r *rig) measure(w *row) (string, error) {
	targets := r.targets
	if w.alone {
		targets = targets[:1]
	}
	values := map[*target][]float64{}
	for range w.turns { // in turns, so that other load on the machine affects both
		for _, t := range targets {
			v, err := w.f(t)
			if err != nil {
				return "failed | | ", fmt.Errorf("%s: %s: %w", w.name, t.name, err)
			}
			values[t] = append(values[t], v)
		}
	}
	a := median(values[targets[0]])
	if w.alone {
		return fmt.Sprintf(w.format+" | | ", a), nil
	}
	b := median(values[targets[1]])
	return fmt.Sprintf(w.format+" | "+w.format+" | %.2f", a, b, a/b), nil
}

// The marks around the table in the page.
const (
	begin = "<!-- login: written by make bench-login -->\n"
	end   = "<!-- end of login -->\n"
)

// write replaces the table in the page.
func write(page, table string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, hasBegin := strings.Cut(string(data), begin)
	_, tail, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s lacks the marks between which the table is written", page)
	}
	return os.WriteFile(page, []byte(head+begin+table+end+tail), 0o644)
}
