package main

import (
	"slices"
	"strconv"
	"strings"
)

// place says where an option is given: on the command line, in the environment, or in the
// batch script.
type place uint8

const (
	onLine place = iota
	inVariable
	inScript // a #SBATCH line
)

// part is an option, a variable, a directive or an operand: the unit that shrinking drops.
type part struct {
	place place
	// name is the option's long name, "" for an operand.
	name string
	// value is masked in signatures; "" if there is none.
	value string
	words []string
	// fixed parts are never dropped.
	fixed bool
}

// kind says which commands surround the command of a call.
type kind uint8

const (
	// query changes nothing.
	query kind = iota
	// allocation leaves a finished job behind at most.
	allocation
	// submit is an sbatch -H; the job is shown and cancelled.
	submit
	// change is a command on a fresh held job, which is shown and cancelled.
	change
)

// call is a command line that both systems run.
type call struct {
	kind    kind
	command string
	parts   []part
	// isScript: the parts in the script are its lines as they are, not directives.
	isScript bool
}

// args returns the arguments of the command.
func (c *call) args() []string { return c.wordsAt(onLine) }

// variables returns the environment variables of the command, as NAME=VALUE.
func (c *call) variables() []string { return c.wordsAt(inVariable) }

// wordsAt returns the words of the parts that are given at a place.
func (c *call) wordsAt(where place) (out []string) {
	for _, p := range c.parts {
		if p.place == where {
			out = append(out, p.words...)
		}
	}
	return out
}

// script returns the standard input: a batch script for sbatch.
func (c *call) script() string {
	if c.isScript {
		return strings.Join(c.wordsAt(inScript), "\n")
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, p := range c.parts {
		if p.place == inScript {
			b.WriteString("#SBATCH " + strings.Join(p.words, " ") + "\n")
		}
	}
	b.WriteString("true\n")
	return b.String()
}

// without returns c without part i.
func (c *call) without(i int) *call {
	d := *c
	d.parts = slices.Delete(slices.Clone(c.parts), i, i+1)
	return &d
}

// optionNames returns the sorted names of the options that c has and that may be dropped.
func (c *call) optionNames() []string {
	var out []string
	for _, p := range c.parts {
		if !p.fixed && p.name != "" {
			out = append(out, p.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String returns c as a line for a shell.
func (c *call) String() string {
	var words []string
	for _, v := range c.variables() {
		name, value, _ := strings.Cut(v, "=")
		words = append(words, name+"="+quote(value))
	}
	words = append(words, c.command)
	for _, a := range c.args() {
		words = append(words, quote(a))
	}
	line := strings.Join(words, " ")
	if c.isScript {
		return line + " <<< " + strconv.Quote(c.script())
	}
	for _, p := range c.parts {
		if p.place == inScript {
			line += "  #SBATCH " + strings.Join(p.words, " ")
		}
	}
	return line
}

// quote returns s as a shell reads it.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()[]*?!`#~{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
