package slurmerr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPrintAndExit(t *testing.T) {
	plain := errors.New("broken")
	tests := []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{plain, 1, "sbatch: error: broken\n"},
		{New(Usage, "unrecognized option '--x'"), 255, "sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information\n"},
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
