package value

import (
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// maxArrayIndex is the highest index that Slurm parses. Admission enforces the
// cluster's MaxArraySize, which is lower.
const maxArrayIndex = 4000000

// Array parses an array specification (-a): indexes, ranges FIRST-LAST and steps
// FIRST-LAST:STEP separated by commas, and %N for the number of concurrent tasks. The
// indexes of the result are ascending and unique; Spec is its canonical text. As in
// Slurm either bracket around the text is optional, without an index there is the one with
// number 0, and a %N that is not positive is ignored.
func Array(s string) (*job.Array, error) {
	body, limit, limited := strings.Cut(s, "%")
	body = strings.TrimSuffix(strings.TrimPrefix(body, "["), "]")
	if s != "" && strings.Trim(body, ",") == "" {
		body = "0"
	}
	intervals, err := ArrayIntervals(body)
	if err != nil {
		return nil, err
	}
	a := &job.Array{}
	if limited {
		a.Max = int32(min(max(0, Leading(limit)), math.MaxInt32))
	}
	if a.Indexes, err = intervals.expand(); err != nil {
		return nil, err
	}
	a.Spec = ArraySpec(a.Indexes, a.Max)
	return a, nil
}

// index parses one index.
func index(s string) (int32, error) {
	if !digits(s) {
		return 0, ErrInvalid
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n > maxArrayIndex {
		return 0, ErrInvalid
	}
	return int32(n), nil
}

// Indexes with a constant step are formatted as FIRST-LAST:STEP if there are at least
// steppedCount of them and they span more than steppedSpan (as in Slurm 22.05).
const (
	steppedCount = 6
	steppedSpan  = 10
)

// ArraySpec formats ascending indexes as Slurm shows them: 1-3,5,7-9%2, or 0-98:2%2 if
// the step is constant.
func ArraySpec(indexes []int32, limit int32) string {
	var b []byte
	if step := stride(indexes); step > 1 {
		b = strconv.AppendInt(b, int64(indexes[0]), 10)
		b = strconv.AppendInt(append(b, '-'), int64(indexes[len(indexes)-1]), 10)
		b = strconv.AppendInt(append(b, ':'), int64(step), 10)
	} else {
		b = appendRanges(b, indexes)
	}
	if limit > 0 {
		b = strconv.AppendInt(append(b, '%'), int64(limit), 10)
	}
	return string(b)
}

// stride returns the constant step between the indexes if it is to be shown, or 0.
func stride(indexes []int32) int32 {
	n := len(indexes)
	if n < steppedCount || indexes[n-1]-indexes[0] <= steppedSpan {
		return 0
	}
	d := indexes[1] - indexes[0]
	for i := 2; i < n; i++ {
		if indexes[i]-indexes[i-1] != d {
			return 0
		}
	}
	return d
}

func appendRanges(b []byte, indexes []int32) []byte {
	for i := 0; i < len(indexes); {
		end := i
		for end+1 < len(indexes) && indexes[end+1] == indexes[end]+1 {
			end++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(indexes[i]), 10)
		if end > i {
			b = strconv.AppendInt(append(b, '-'), int64(indexes[end]), 10)
		}
		i = end + 1
	}
	return b
}
