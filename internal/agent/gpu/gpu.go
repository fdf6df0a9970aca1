// Package gpu tells what the GPUs do that a pod can see. It asks NVIDIA's own
// program, nvidia-smi, which NVIDIA's container runtime puts into every
// container that has a GPU; where there is none, nothing is known.
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

// ErrNone means that there is no program that could tell.
var ErrNone = errors.New("nvidia-smi is not there")

// patience bounds one run of the program, which takes a second on machines
// whose driver has to be woken first.
const patience = 5 * time.Second

// folders are where the program is where PATH does not have it.
var folders = []string{"/usr/bin", "/usr/local/nvidia/bin", "/usr/local/cuda/bin"}

// query are the columns that are asked for, in their order.
const query = "index,uuid,name,utilization.gpu,memory.used,memory.total"

// Sample asks what the GPUs do. ErrNone: there is nothing to ask.
func Sample(ctx context.Context) ([]step.GPU, error) {
	program := find()
	if program == "" {
		return nil, ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--query-gpu="+query, "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if errors.Is(err, syscall.ECHILD) { // the agent, which reaps all of its children, was first: what was said is there
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return parse(string(out))
}

func find() string {
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		return path
	}
	for _, dir := range folders {
		path := filepath.Join(dir, "nvidia-smi")
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// parse reads the program's table. Memory is in MiB there; what it does not
// know it writes as [N/A] or [Not Supported].
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

// number is a count up to most, or -1.
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

// Own are those of list that belong to a job which has count GPUs with these
// indexes. A container sees its own alone; who sees more runs beside the
// machine's other GPUs, and theirs are those with the indexes. No indexes: there
// is no telling, and nothing is left.
func Own(list []step.GPU, count int64, indexes []int) []step.GPU {
	if int64(len(list)) <= count {
		return list
	}
	return slices.DeleteFunc(list, func(g step.GPU) bool { return !slices.Contains(indexes, int(g.Index)) })
}
