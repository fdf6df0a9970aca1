package main

import (
	"slices"
	"strings"
	"testing"
)

func TestScripts(t *testing.T) {
	one, err := newScripts(7, "../../examples")
	if err != nil {
		t.Fatal(err)
	}
	again, err := newScripts(7, "../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if len(one.seeds) < 10 {
		t.Errorf("only %d examples have directives", len(one.seeds))
	}
	kinds := map[string]int{}
	for range 3000 {
		a, b := one.next(), again.next()
		if a.script() != b.script() {
			t.Fatalf("one seed made two scripts:\n%q\n%q", a.script(), b.script())
		}
		for kind, is := range map[string]bool{
			"directives":      strings.Contains(a.script(), "\n#SBATCH "),
			"no interpreter":  !strings.HasPrefix(a.script(), "#!"),
			"Windows line":    strings.Contains(a.script(), "\r\n"),
			"control":         strings.Contains(a.script(), "\x1b"),
			"invalid UTF-8":   strings.Contains(a.script(), "\xff"),
			"an open quote":   strings.Count(a.script(), "'")%2 == 1,
			"a late #SBATCH":  strings.Contains(a.script(), "srun true\n#SBATCH"),
			"another keyword": strings.Contains(a.script(), "#PBS "),
		} {
			if is {
				kinds[kind]++
			}
		}
	}
	if len(kinds) != 8 {
		t.Errorf("some kinds of script were not made: %v", kinds)
	}
}

func TestScriptsAreShrunkByLines(t *testing.T) {
	c := &call{kind: query, command: "sbatch", isScript: true}
	for _, l := range []string{"#!/bin/sh", "#SBATCH -t1", "#SBATCH --bad", "true"} {
		c.parts = append(c.parts, part{place: inScript, words: []string{l}})
	}
	got := shrink(c, 50, func(c *call) bool { return strings.Contains(c.script(), "--bad") })
	if got.script() != "#SBATCH --bad" {
		t.Errorf("shrunk to %q", got.script())
	}
}

func TestScriptAnswer(t *testing.T) {
	got := scriptAnswer([]line{
		{"err", "sbatch: Job 12 to start at 2030-01-01T00:00:00 using 1 processors on nodes n1 in partition debug"},
		{"err", "sbatch: error: Invalid \x1b[31m"},
	})
	if want := []line{{"err", "accepted"}, {"err", `sbatch: error: Invalid \x1b[31m`}}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
