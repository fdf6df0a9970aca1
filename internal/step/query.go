package step

import (
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth/internal/wire"
)

// QueryUsage asks the agents of a job what the given running steps use, or all
// running steps if none is given. conn must be new; the caller closes it.
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

// ParseID returns the number of the step with the given name or number, and
// math.MinInt32, which no step has, for other texts.
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
