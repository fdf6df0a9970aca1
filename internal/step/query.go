package step

import (
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth/internal/wire"
)

// QueryUsage returns what the given running steps of a job use, or all its running steps
// if none is given. conn must be new; the caller closes it.
func QueryUsage(conn *Conn, steps ...int32) (list []Usage, err error) {
	if err := conn.SendJSON(FrameQuery, &Query{Steps: steps}); err != nil {
		return nil, err
	}
	err = Follow(conn, nil, func(f *Frame) error {
		var u Usage
		if f.Type != FrameUsage {
			return fmt.Errorf("%w: type %d", ErrFrame, f.Type)
		}
		err := f.Decode(&u)
		list = append(list, u)
		return err
	})
	return list, err
}

// namedSteps are the steps that have a name in place of a number.
var namedSteps = map[string]int32{
	"batch": wire.StepBatch, "extern": wire.StepExtern, "interactive": wire.StepInteractive,
}

// ParseID returns the number of the step with the given name ("batch", "extern",
// "interactive") or number. For any other text it returns math.MinInt32, which is the
// number of no step.
func ParseID(name string) int32 {
	if id, ok := namedSteps[name]; ok {
		return id
	}
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return math.MinInt32
	}
	return int32(n)
}
