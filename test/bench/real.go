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
	return benchNodes(ctx, page, realMarks, "TestRealNodes/(overhead|bench)", "BERTH_E2E_JOBS=500")
}

// The suite "cores" measures kernels in jobs beside other pods, on kubelets with and without
// the static CPU manager.
var coresMarks = marks{"<!-- cores: written by make bench-cores -->\n", "<!-- end of cores -->\n"}

func benchCores(ctx context.Context, page string) error {
	return benchNodes(ctx, page, coresMarks, "TestCores", "BERTH_E2E_CORES=5")
}

// benchNodes runs a test of test/realnode with the variable and writes what it measured
// between the marks of the page.
func benchNodes(ctx context.Context, page string, m marks, test, variable string) error {
	load := firstField("/proc/loadavg")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=25m", "-tags=e2ereal",
		"-run="+test, "./test/realnode")
	cmd.Env = append([]string{variable}, os.Environ()...) // the last one counts
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
	return m.replace(page, b.String())
}
