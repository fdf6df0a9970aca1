package translate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExportVariables checks the variables about --export in the job's
// environment, as recorded from jobs of Slurm 22.05.8.
func TestExportVariables(t *testing.T) {
	for export, want := range map[string][]string{
		"ALL": nil, "all": nil,
		"ALL,FOO=1": {"SLURM_EXPORT_ENV=ALL,FOO=1", "SLURM_GET_USER_ENV=1"},
		"FOO,ALL":   {"SLURM_EXPORT_ENV=FOO,ALL", "SLURM_GET_USER_ENV=1"},
		"FOO=1":     {"SLURM_EXPORT_ENV=FOO=1", "SLURM_GET_USER_ENV=1"},
		"none":      {"SLURM_EXPORT_ENV=none", "SLURM_GET_USER_ENV=1"},
	} {
		s, err := Sbatch(Input{
			Args: []string{"--export=" + export}, Script: []byte("#!/bin/sh\n"), Dir: "/tmp",
			Now: time.Unix(1800000000, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range s.Environment {
			if strings.HasPrefix(e, "SLURM_EXPORT_ENV=") || strings.HasPrefix(e, "SLURM_GET_USER_ENV=") {
				got = append(got, e)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("--export=%s: %q, want %q", export, got, want)
		}
	}
}
