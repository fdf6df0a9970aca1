package step

import (
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth/internal/wire"
)

// Ask asks the agents of a job for some of its steps that run, or for all, and
// what they use. conn is new and stays the caller's.
func Ask(conn *Conn, steps ...int32) (list []Usage, err error) {
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

// special are the steps that have a name.
var special = map[string]int32{"batch": wire.StepBatch, "extern": wire.StepExtern, "interactive": wire.StepInteractive}

// Number is the number of a step by the name that users give it; math.MinInt32
// is none of a job.
func Number(name string) int32 {
	if id, ok := special[name]; ok {
		return id
	}
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return math.MinInt32
	}
	return int32(n)
}
