package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
)

const now = 1_000_000

func store() *data.Store {
	s := data.NewStore(query.Fields())
	s.Apply(&status.JobEvent{Type: status.EventSync, Revision: "1", Time: now, Items: []status.Job{
		{
			ID:        1,
			Name:      "train",
			User:      "anna",
			Partition: "gpu",
			State:     "RUNNING",
			Start:     now - 7200,
			Submit:    now - 9000,
			TimeLimit: 600,
			Nodes:     2,
			CPUs:      64,
			NodeList:  "n[1-2]",
			TRES:      "cpu=64,gres/gpu=8",
			MinMemory: 65536,
		},
		{
			ID:        2,
			Name:      "Train Small",
			User:      "ben",
			Partition: "main",
			State:     "PENDING",
			Reason:    "Priority",
			Submit:    now - 60,
			TimeLimit: -1,
			Nodes:     1,
			CPUs:      4,
			Start:     now + 600,
		},
		{
			ID:          30,
			Name:        "sweep",
			User:        "anna",
			Partition:   "main",
			State:       "PENDING",
			Reason:      "Dependency",
			ArrayJobID:  30,
			ArrayTaskID: "0-9",
			CPUs:        1,
			Nodes:       1,
			Dependency:  "afterok:1",
		},
		{
			ID:        31,
			Name:      "run_7",
			User:      "carl",
			Partition: "main",
			State:     "COMPLETING",
			CPUs:      2,
			Nodes:     1,
			NodeList:  "n10",
			TRES:      "gres/gpu:a100=1",
			QOS:       "high",
		},
	}})
	return s
}

func TestQueries(t *testing.T) {
	s := store()
	for text, want := range map[string]string{
		"": "1 2 30 31", "train": "1 2", "TRAIN anna": "1", "!train": "30 31", `"train small"`: "2", "~trsm": "2",
		"user:anna": "1 30", "u:anna,ben": "1 2 30", "user:A*": "1 30", "user!=anna": "2 31", "!user:anna": "2 31", "user:an": "", "user:": "1 2 30 31",
		"st:R": "1", "st:pd": "2 30", "state:PENDING": "2 30", "st:P": "2 30", "st:R,CG": "1 31", "st:com": "31",
		"gpu>=1": "1 31", "gpu>4": "1", "gpu=0": "2 30", "cpu<4": "30 31", "nodes!=1": "1", "mem>=64G": "1", "mem>64G": "",
		"time>1h": "1", "time>=2:00:00": "1", "time>2h": "", "limit=unlimited": "2", "limit>9h": "1 2", "limit<=600": "1 30 31",
		"limit=0-10": "1", "limit=0-10:00": "1", "limit=10:00:00": "1", "limit=600:00": "1", "limit>0-09": "1 2", "limit<1-": "1 30 31",
		"time=0-2": "1", "time>=0-02:00:01": "", "time>1-0": "",
		"age<2m": "2", "wait>0s": "2", "wait<=10": "1 2 30 31",
		"node:n1": "1", "node:n[1-9]": "1", "node:n10": "31", "w:n[": "1", "reason:prio": "2", "dep:afterok": "30", "qos:high": "31",
		"id:30": "30", "30": "30", "30_[0-9]": "30", "/^run_[0-9]+$/": "31", "/^run_[0-9]+$/ user:anna": "", "/RUN/": "1", "/RUNS/": "", "name~^t": "1 2",
		"part:gpu|": "", "/": "1 2 30 31", "12:30": "", "  ": "1 2 30 31",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		pass := q.Bind(s, now)
		var got []string
		for _, slot := range s.Slots(nil) {
			if pass(slot) {
				got = append(got, fmt.Sprint(s.ID(slot)))
			}
		}
		slices.SortFunc(got, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q: %s, want %s", text, g, want)
		}
	}
}

func TestBroken(t *testing.T) {
	for text, want := range map[string]string{
		"colour:red": "no field is called", "gpu>=x": "is not a number", "gpu~1": "is a number", "user>3": "is not a number: write user:", "/(/": "missing closing",
		"st:nonsense": "no state is called", "time>soon": "is not a time", "mem>4x": "is not an amount", "time>1:2:3:4": "is not a time", "time>-1": "is not a time", "time>1-x": "is not a time", "limit=1-2-3": "is not a time", "user!anna": "write !user:",
		"name~(": "missing closing", "node:n[0-99999999]": "is not a list of nodes", "cpu=1e": "is not a number",
	} {
		if _, err := query.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestGPUs(t *testing.T) {
	for text, want := range map[string]int{"": 0, "cpu=4": 0, "cpu=4,gres/gpu=2": 2, "gres/gpu:a100=2,gres/gpu=2": 2, "gres/gpu:a100=2,gres/gpu:h100=1": 3, "gres/gpu=x": 0} {
		if got := query.GPUs(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"train", "user:anna st:PD gpu>=4", "/re/", `"a b`, "!~x", "time>1-2:3", "node:n[1-3,", "mem<=1.5T", "\x00:\xff", "!/", "st:,", "id:30_[1-", "w:[[", "user:**"} {
		f.Add(s)
	}
	s := store()
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text)
		if err != nil {
			if e := err.Error(); strings.ContainsAny(e, "\x00\x1b\n") {
				t.Errorf("%q: the error can control a terminal: %q", text, e)
			}
			return
		}
		pass := q.Bind(s, now)
		for _, slot := range s.Slots(nil) {
			if before := pass(slot); before != pass(slot) {
				t.Errorf("%q: two results for one row", text)
			}
		}
		q.Match(func(string) (string, bool) { return text, true }, text)
	})
}
