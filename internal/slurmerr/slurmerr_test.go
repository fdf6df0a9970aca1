package slurmerr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestExitCodeFor checks the effect of SLURM_EXIT_ERROR and SLURM_EXIT_IMMEDIATE as in
// Slurm 22.05.8.
func TestExitCodeFor(t *testing.T) {
	set := func(name string) string {
		return map[string]string{"SLURM_EXIT_ERROR": "42", "SLURM_EXIT_IMMEDIATE": "43"}[name]
	}
	for _, tt := range []struct {
		err      error
		want, no int
	}{
		{nil, 0, 0}, {New(Refused, "x"), 42, 1}, {New(Unreachable, "x"), 42, 1}, {New(Busy, "x"), 43, 1},
		{New(Usage, "x"), 255, 255},
		{New(BadValue, "x"), 255, 255}, {New(Fatal, "x"), 1, 1}, {&Error{Code: 7}, 7, 7}, {&Error{Code: 1}, 1, 1},
		{errors.New("x"), 1, 1},
	} {
		if got := ExitCodeFor(tt.err, set); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.err, got, tt.want)
		}
		if got := ExitCodeFor(tt.err, func(string) string { return "" }); got != tt.no {
			t.Errorf("%+v, nothing set: %d, want %d", tt.err, got, tt.no)
		}
	}
}

func TestPrintAndExit(t *testing.T) {
	plain := errors.New("broken")
	tests := []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{plain, 1, "sbatch: error: broken\n"},
		{New(Usage, "unrecognized option '--x'"), 255,
			"sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information\n"},
		{New(BadValue, "Invalid --time specification"), 255, "sbatch: error: Invalid --time specification\n"},
		{&Error{Kind: BadValue, Before: []string{"raw"}, Message: "m"}, 255, "raw\nsbatch: error: m\n"},
		{New(Refused, "one\ntwo"), 1, "sbatch: error: one\nsbatch: error: two\n"},
		{New(Fatal, "no"), 1, "sbatch: fatal: no\n"},
		{fmt.Errorf("deeper: %w", New(Refused, "inner").Hint("try %d", 2)), 1, "sbatch: error: inner\nsbatch: try 2\n"},
		{Wrap(Refused, plain, ""), 1, "sbatch: error: broken\n"},
		{&Error{Code: 7}, 7, ""},
	}
	for _, tt := range tests {
		var b strings.Builder
		Print(&b, "sbatch", tt.err)
		if b.String() != tt.text || ExitCode(tt.err) != tt.code {
			t.Errorf("%#v: %q, %d; want %q, %d", tt.err, b.String(), ExitCode(tt.err), tt.text, tt.code)
		}
	}
	if !errors.Is(Wrap(Refused, plain, "x"), plain) {
		t.Error("Wrap loses its cause")
	}
}

// TestSuppress: with -QQ, Slurm 22.05.8 prints no errors but those without "error:".
func TestSuppress(t *testing.T) {
	refused := &Error{Kind: Refused, Code: 1, Message: "x",
		Before: []string{"sbatch: error: no", "allocation failure: no"}}
	var b strings.Builder
	Print(&b, "sbatch", Suppress("sbatch", refused))
	if b.String() != "allocation failure: no\n" {
		t.Errorf("%q", b.String())
	}
	fatal := New(Fatal, "x")
	if got := Suppress("sbatch", fatal); !errors.Is(got, fatal) || Suppress("sbatch", nil) != nil {
		t.Error("a fatal error, or none, is another one")
	}
}
