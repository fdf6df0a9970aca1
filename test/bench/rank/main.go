// Command rank does what an MPI program does at its start, for the benchmark of steps:
// it initializes PMI-2, puts a value, waits at the fence, and finalizes. It implements
// the protocol itself, because loading a library would take longer than what is
// measured.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rank:", err)
		os.Exit(1)
	}
}

func run() error {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil {
		return fmt.Errorf("PMI_FD: %w", err)
	}
	c := os.NewFile(uintptr(fd), "pmi")
	r := bufio.NewReader(c)
	if _, err := io.WriteString(c, "cmd=init pmi_version=2 pmi_subversion=0\n"); err != nil {
		return err
	}
	if _, err := r.ReadString('\n'); err != nil {
		return err
	}
	rank := os.Getenv("PMI_RANK")
	for _, m := range []string{
		"cmd=fullinit;pmijobid=" + os.Getenv("PMI_JOBID") + ";pmirank=" + rank + ";threaded=FALSE;",
		"cmd=kvs-put;key=address-" + rank + ";value=host" + rank + ":4711;",
		"cmd=kvs-fence;",
		"cmd=finalize;",
	} {
		if err := ask(c, r, m); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	return nil
}

// ask sends a message and reads the answer: six digits, and that number of bytes.
func ask(w io.Writer, r io.Reader, message string) error {
	if _, err := fmt.Fprintf(w, "%6d%s", len(message), message); err != nil {
		return err
	}
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscanf(string(head[:]), "%d", &n); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r, int64(n))
	return err
}
