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

// System are the folders whose objects every machine has of its own: the
// default of BcastExclude (slurm.conf(5)).
const System = "/lib,/usr/lib,/lib64,/usr/lib64"

// Of asks ldd(1) for the shared objects of a program, as absolute paths. The
// error, of one that is no dynamic executable too, is in Slurm's words.
func Of(ctx context.Context, program string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", program)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || strings.Contains(text, "statically linked") {
		return nil, fmt.Errorf("Cannot autodetect libraries for '%s' with ldd command; "+ //nolint:staticcheck // Slurm's capital
			"still sending the file but ignoring send_libs", program)
	}
	return read(text), nil
}

// read takes the paths out of what ldd prints: "NAME => PATH (ADDRESS)", or
// "PATH (ADDRESS)" for the loader. Objects that are not found are nobody's to
// send.
func read(text string) (paths []string) {
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

// Without leaves out what lies in, or below, one of the folders, which commas
// part; "none" is no folder.
func Without(paths []string, folders string) []string {
	var kept []string
next:
	for _, p := range paths {
		for dir := range strings.SplitSeq(folders, ",") {
			if dir != "" && !strings.EqualFold(dir, "none") && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") {
				continue next
			}
		}
		kept = append(kept, p)
	}
	return kept
}
