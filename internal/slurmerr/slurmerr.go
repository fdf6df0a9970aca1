// Package slurmerr defines the error type of the commands: a message in Slurm's words, and
// the exit code of the command. Code must not depend on the texts of errors.
package slurmerr

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
)

// Kind is the kind of a failure; it determines exit code and prefix.
type Kind int

// The kinds, as in Slurm 22.05.8. See ExitCode for their exit codes.
const (
	Refused     Kind = iota // the request is not possible: controller, limits, files
	Usage                   // syntax of the command line (getopt's messages)
	BadValue                // an invalid value of an option
	Fatal                   // contradictory options; printed as "fatal"
	Unreachable             // the cluster does not respond
	Denied                  // the cluster refuses the caller
	Internal                // a bug
	Busy                    // --immediate was given, and the resources are in use
)

// Error is a failure that is reported to the user. Message may have several lines; each is
// printed after the command's name. It does not contain a prefix.
type Error struct {
	Kind    Kind
	Message string
	// Before are lines that are printed unchanged before Message.
	Before []string
	// After is printed unchanged after Message, including its newlines.
	After string
	// Hints are lines in our own words about how to fix the problem.
	Hints []string
	// Cause is the wrapped error; it is printed only if Message is empty.
	Cause error
	// ByController means that Slurm's controller refuses the request, not the command: errors about
	// the cluster come before it.
	ByController bool
	// Code, if not 0, is the exit code in place of that of the kind.
	Code int
}

// New returns an Error.
func New(kind Kind, message string) *Error {
	return &Error{Kind: kind, Message: message}
}

// Newf returns an Error with a formatted message.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error that wraps cause.
func Wrap(kind Kind, cause error, message string) *Error {
	return &Error{Kind: kind, Message: message, Cause: cause}
}

// Hint adds a hint and returns e.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Error returns Message, or the text of Cause.
func (e *Error) Error() string {
	if e.Message == "" && e.Cause != nil {
		return e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns Cause.
func (e *Error) Unwrap() error { return e.Cause }

// ExitCode returns the exit code of a command that failed with err: 0 for nil, 1 for an
// error that is not an *Error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var e *Error
	if !errors.As(err, &e) {
		return 1
	}
	if e.Code != 0 {
		return e.Code
	}
	switch e.Kind {
	case Usage, BadValue:
		return 255
	default:
		return 1
	}
}

// ExitCodeFor is ExitCode for commands whose exit codes the environment can set:
// SLURM_EXIT_IMMEDIATE for Busy, SLURM_EXIT_ERROR for other refusals. Errors about the
// command line, and those with a Code, are not affected.
func ExitCodeFor(err error, environment func(name string) string) int {
	var e *Error
	if err == nil || !errors.As(err, &e) || e.Code != 0 {
		return ExitCode(err)
	}
	name := "SLURM_EXIT_ERROR"
	switch e.Kind {
	case Usage, BadValue, Fatal, Internal:
		return ExitCode(err)
	case Busy:
		name = "SLURM_EXIT_IMMEDIATE"
	}
	if n, err := strconv.Atoi(environment(name)); err == nil && n > 0 && n < 256 {
		return n
	}
	return ExitCode(err)
}

// Print writes err to w in the name of command cmd. It prints nothing for a nil error and
// for an Error without text.
func Print(w io.Writer, cmd string, err error) {
	if err == nil {
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error()}
	}
	var b strings.Builder
	for _, line := range e.Before {
		b.WriteString(line + "\n")
	}
	prefix := cmd + ": error: "
	switch e.Kind {
	case Usage:
		prefix = cmd + ": "
	case Fatal:
		prefix = cmd + ": fatal: "
	}
	if text := e.Error(); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			b.WriteString(prefix + line + "\n")
		}
	}
	if e.Kind == Usage {
		b.WriteString("Try \"" + cmd + " --help\" for more information\n")
	}
	b.WriteString(e.After)
	for _, h := range e.Hints {
		b.WriteString(cmd + ": " + h + "\n")
	}
	// Messages have words of the command line, which may come from anywhere.
	io.WriteString(w, printable.EscapeLines(b.String())) //nolint:errcheck // there is no other stream
}

// Suppress returns the error of a command as -QQ reports it: without messages, unless it is
// fatal, or the line has no "error:" in front.
func Suppress(cmd string, err error) error {
	var e *Error
	switch {
	case err == nil, errors.As(err, &e) && e.Kind == Fatal:
		return err
	case e == nil:
		return &Error{Code: 1}
	}
	before := slices.DeleteFunc(slices.Clone(e.Before), func(line string) bool {
		return strings.HasPrefix(line, cmd+": error: ")
	})
	return &Error{Kind: e.Kind, Code: e.Code, Before: before}
}
