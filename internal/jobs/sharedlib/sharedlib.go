// Package sharedlib finds the shared objects that a program loads, for
// srun and sbcast --send-libs.
package sharedlib

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefaultExclude are the directories whose shared objects exist on every machine: the
// default of BcastExclude (slurm.conf(5)).
const DefaultExclude = "/lib,/usr/lib,/lib64,/usr/lib64"

// Dependencies returns the absolute paths of the shared objects of a program, as
// ldd(1) finds them. The error, also that for a static executable, is in Slurm's
// words.
func Dependencies(ctx context.Context, program string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", program)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || strings.Contains(text, "statically linked") {
		return nil, fmt.Errorf(
			"Cannot autodetect libraries for '%s' with ldd command; "+ //nolint:staticcheck // Slurm's capital
				"still sending the file but ignoring send_libs",
			program,
		)
	}
	return parseLdd(text), nil
}

// parseLdd returns the paths in the output of ldd: "NAME => PATH (ADDRESS)", or
// "PATH (ADDRESS)" for the loader. It leaves out objects that were not found.
func parseLdd(text string) (paths []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " (0x")
		if _, path, ok := strings.Cut(line, " => "); ok {
			line = path
		}
		if filepath.IsAbs(line) {
			paths = append(paths, line)
		}
	}
	return paths
}

// Exclude returns the paths that are not below one of the comma-separated directories. The
// word "none" stands for no directory.
func Exclude(paths []string, directories string) []string {
	var kept []string
next:
	for _, p := range paths {
		for dir := range strings.SplitSeq(directories, ",") {
			if dir != "" && !strings.EqualFold(dir, "none") && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") {
				continue next
			}
		}
		kept = append(kept, p)
	}
	return kept
}
