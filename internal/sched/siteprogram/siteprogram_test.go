package siteprogram

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/exectest"
)

// TestRun: a program gets its arguments and variables, none of this process's secrets, and of
// its output only the beginning is kept.
func TestRun(t *testing.T) {
	t.Setenv("SECRET", "x")
	file := filepath.Join(t.TempDir(), "program")
	exectest.Write(t, file, "#!/bin/sh\n[ \"$1 $2\" = 'a b c' ] && [ $SITE = y ] && [ -z \"$SECRET\" ] && [ -n \"$PATH$HOME\" ] && exit 0\n"+
		"echo wrong: $1; head -c 1000000 /dev/zero | tr '\\0' x; exit 3\n")
	if err := Run(t.Context(), file, []string{"a", "b c"}, []string{"SITE=y"}); err != nil {
		t.Error(err)
	}
	err := Run(t.Context(), file, []string{"other"}, []string{"SITE=y"})
	if err == nil || !strings.Contains(err.Error(), file+" other: exit status 3: wrong: other") || len(err.Error()) > 2*maxOutput {
		t.Errorf("the error is %.600v", err)
	}
}
