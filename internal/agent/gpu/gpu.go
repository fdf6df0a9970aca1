// Package gpu measures the load of the GPUs that a pod can see. It runs nvidia-smi,
// which NVIDIA's container runtime adds to every container with a GPU; without it the
// load is unknown.
package gpu

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// ErrNone means that nvidia-smi is not installed.
var ErrNone = errors.New("nvidia-smi is not installed")

// timeout limits one run of the program, which takes a second on machines whose driver
// must be loaded first.
const timeout = 5 * time.Second

// dirs are searched for the program after PATH.
var dirs = []string{"/usr/bin", "/usr/local/nvidia/bin", "/usr/local/cuda/bin"}

// query contains the requested columns.
const query = "index,uuid,name,utilization.gpu,memory.used,memory.total"

// Sample returns the load of the visible GPUs. The error is ErrNone if nvidia-smi is not
// installed.
func Sample(ctx context.Context) ([]step.GPU, error) {
	out, err := ask(ctx, query)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

// ask returns the columns of nvidia-smi's table.
func ask(ctx context.Context, columns string) (string, error) {
	program := find()
	if program == "" {
		return "", ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--query-gpu="+columns, "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if errors.Is(err, syscall.ECHILD) { // the agent's reaper was faster; the output is complete
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return string(out), nil
}

// find returns the path of nvidia-smi, or "".
func find() string {
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		return path
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, "nvidia-smi")
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// parse parses the program's table. Memory is in MiB; unknown values are [N/A] or
// [Not Supported].
func parse(text string) ([]step.GPU, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace, r.LazyQuotes = true, true
	r.FieldsPerRecord = strings.Count(query, ",") + 1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	out := make([]step.GPU, 0, len(rows))
	for _, row := range rows {
		index, err := strconv.ParseInt(row[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: %w", err)
		}
		out = append(out, step.GPU{
			Index: int32(index), UUID: row[1], Name: row[2],
			Busy: int32(number(row[3], 100)), Memory: mib(row[4]), Total: mib(row[5]),
		})
	}
	return out, nil
}

// number parses a number from 0 to most, and returns -1 for other texts.
func number(text string, most int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > most {
		return -1
	}
	return n
}

func mib(text string) int64 {
	const most = 1 << 40
	if n := number(text, most); n >= 0 {
		return n << 20
	}
	return -1
}

// Own returns the GPUs of list that belong to a job with count GPUs at these indexes. A
// container sees only its own GPUs. If more are visible, the job's are those at the
// indexes; if these are unknown, Own returns none.
func Own(list []step.GPU, count int64, indexes []int) []step.GPU {
	if int64(len(list)) <= count {
		return list
	}
	return slices.DeleteFunc(list, func(g step.GPU) bool { return !slices.Contains(indexes, int(g.Index)) })
}
