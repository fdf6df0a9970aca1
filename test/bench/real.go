package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// The suite "real" measures the installed product on real kubelets, with tests of
// test/realnode that print their results.
var realMarks = marks{"<!-- real: written by make bench-real -->\n", "<!-- end of real -->\n"}

func benchReal(ctx context.Context, page string) error {
	load := firstField("/proc/loadavg")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=25m", "-tags=e2ereal",
		"-run=TestRealNodes/(overhead|bench)", "./test/realnode")
	cmd.Env = append([]string{"BERTH_E2E_JOBS=500"}, os.Environ()...) // the last one counts
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("test/realnode: %w\n%s", err, out)
	}
	var b strings.Builder
	b.WriteString("| what | |\n|---|---|\n")
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if _, said, ok := strings.Cut(s.Text(), ": measured "); ok {
			what, value, _ := strings.Cut(said, ": ")
			fmt.Fprintf(&b, "| %s | %s |\n", what, value)
		}
	}
	b.WriteString(circumstances(load))
	fmt.Print(b.String())
	if page == "" {
		return nil
	}
	return realMarks.replace(page, b.String())
}
