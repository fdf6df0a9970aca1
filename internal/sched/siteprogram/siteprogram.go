// Package siteprogram runs programs of the site in the scheduler's process: those that bring
// nodes, and the one that makes homes.
package siteprogram

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// maxOutput is how much of a program's output is kept, for the error.
const maxOutput = 512

// Run runs a program and returns an error with the beginning of its output if it fails. It
// gets the variables more, and no variable of this process but PATH and HOME.
func Run(ctx context.Context, path string, args, more []string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append([]string{
		"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"), "HOME=" + cmp.Or(os.Getenv("HOME"), "/"),
	}, more...)
	cmd.WaitDelay = time.Second // a child of it may keep its output open
	var out beginning
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// beginning is a Writer that keeps the first maxOutput bytes.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), maxOutput-len(*b))]...)
	return len(p), nil
}
