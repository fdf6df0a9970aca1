package bulkcancel

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// encode returns a line for each request: when, who, the jobs as "1-5,7", and, for jobs
// that had been requeued, how often.
func encode(requests map[int64]entry) string {
	groups := map[entry][]int64{}
	for id, e := range requests {
		groups[e] = append(groups[e], id)
	}
	lines := make([]string, 0, len(groups))
	for e, ids := range groups {
		line := e.request.At.UTC().Format(time.RFC3339Nano) + " " + strconv.Quote(e.request.By) + " " + ranges(ids)
		if e.requeues > 0 {
			line += " " + strconv.Itoa(int(e.requeues))
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// ranges returns the numbers as "1-5,7".
func ranges(ids []int64) string {
	slices.Sort(ids)
	var b strings.Builder
	for i := 0; i < len(ids); {
		k := i
		for k+1 < len(ids) && ids[k+1] == ids[k]+1 {
			k++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(ids[i], 10))
		if k > i {
			b.WriteString("-" + strconv.FormatInt(ids[k], 10))
		}
		i = k + 1
	}
	return b.String()
}

// decode is the inverse of encode.
func decode(text string) (map[int64]entry, error) {
	requests := map[int64]entry{}
	for line := range strings.Lines(text) {
		one, err := decodeLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of cancelled jobs: %w", strings.TrimSpace(line), err)
		}
		maps.Copy(requests, one)
	}
	return requests, nil
}

// maxSpan bounds the jobs of one range. A range of more jobs than a queue can hold is an
// error, and would fill the memory.
const maxSpan = 10_000_000

// decodeLine returns the requests of one line.
func decodeLine(line string) (map[int64]entry, error) {
	when, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, when)
	if err != nil {
		return nil, err
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return nil, err
	}
	by, err := strconv.Unquote(quoted)
	if err != nil {
		return nil, err
	}
	t := metav1.NewMicroTime(at)
	e := entry{request: &v1alpha1.CancelRequest{By: by, At: &t}}
	ids, requeues, requeued := strings.Cut(strings.TrimPrefix(rest[len(quoted):], " "), " ")
	if requeued {
		n, err := strconv.ParseInt(requeues, 10, 32)
		if err != nil {
			return nil, err
		}
		e.requeues = int32(n)
	}
	requests := map[int64]entry{}
	for part := range strings.SplitSeq(ids, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, err
		}
		to, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return nil, err
		}
		if to < from || to-from > maxSpan {
			return nil, fmt.Errorf("%q is not a range of jobs", part)
		}
		for id := from; id <= to; id++ {
			requests[id] = e
		}
	}
	return requests, nil
}
