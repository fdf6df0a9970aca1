// Package slurmerr is the one error type of the commands: what went wrong, in
// Slurm's words, and with which exit code the command ends. It does no I/O but
// writing to the stream it is given, and nobody matches its texts.
package slurmerr

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind says what sort of failure it is; it decides exit code and prefix.
type Kind int

// The kinds. Measured on Slurm 22.05.8; see ExitCode for their exit codes.
const (
	Refused     Kind = iota // the request is not possible: controller, limits, files
	Usage                   // the command line cannot be read (getopt's messages)
	BadValue                // an option's value cannot be read
	Fatal                   // options that contradict each other; printed as "fatal"
	Unreachable             // the cluster does not answer
	Denied                  // the cluster answers, and does not let us
	Internal                // a mistake of ours
	Busy                    // --immediate was given, and what is wanted is in use
)

// Error is a failure as the user sees it. Message may have several lines; each
// is printed behind the command's name. It has no prefix of its own.
type Error struct {
	Kind    Kind
	Message string
	// Before holds lines that are printed ahead of Message as they are.
	Before []string
	// After is printed behind Message as it is, with its own line ends.
	After string
	// Hints say what to do about it, one line each, in our own words.
	Hints []string
	// Cause is what the error wraps; it is printed only where Message is empty.
	Cause error
	// Code, if not 0, is the exit code instead of the kind's.
	Code int
}

// New makes an Error.
func New(kind Kind, message string) *Error {
	return &Error{Kind: kind, Message: message}
}

// Newf makes an Error with a formatted message.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error of kind that carries cause.
func Wrap(kind Kind, cause error, message string) *Error {
	return &Error{Kind: kind, Message: message, Cause: cause}
}

// Hint adds a line that says what to do, and returns e.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Error is Message, or the text of Cause.
func (e *Error) Error() string {
	if e.Message == "" && e.Cause != nil {
		return e.Cause.Error()
	}
	return e.Message
}

// Unwrap gives Cause.
func (e *Error) Unwrap() error { return e.Cause }

// ExitCode gives the exit code of a command that failed with err: 0 for nil,
// 1 for an error that is not an *Error.
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

// ExitCodeFor is ExitCode where the environment says what errors end with:
// SLURM_EXIT_IMMEDIATE for Busy, SLURM_EXIT_ERROR for what is refused otherwise.
// What contradicts itself, cannot be read or has a code of its own keeps that.
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

// Print writes err to w as command cmd says it. A nil error prints nothing;
// an Error without any text (only an exit code) neither.
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
	io.WriteString(w, b.String()) //nolint:errcheck // nobody to tell
}
