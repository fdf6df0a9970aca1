package change

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// newLimit is a time limit as scontrol update takes it: one, or what is to be
// added to or taken from the present one.
type newLimit struct {
	sign    byte  // '+' or '-'; 0: minutes are the limit
	zero    bool  // what was given is 0, which elsewhere is no limit
	minutes int32 // or job.Unlimited
}

// badTimeLimit is the answer to what is no time limit.
const badTimeLimit = "Invalid TimeLimit value"

func readLimit(v string) (l newLimit, err error) {
	if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
		l.sign, v = v[0], v[1:]
	}
	l.zero = v == "0"
	if l.minutes, err = value.Minutes(v); err != nil {
		return l, unread(badTimeLimit)
	}
	return l, nil
}

// from is the limit that comes of the present one; both in minutes, job.Unlimited
// for none.
func (l newLimit) from(now int32) (int32, error) {
	switch {
	case l.sign == 0:
		return l.minutes, nil
	case l.zero:
		return now, nil
	case now == job.Unlimited, l.minutes <= 0, l.sign == '-' && l.minutes == now:
		return 0, refusal.Text("Invalid TimeLimit increment/decrement value")
	case l.sign == '+':
		return now + l.minutes, nil
	case l.minutes > now:
		return 0, refusal.Text(fmt.Sprintf("TimeLimit decrement larger than current time limit (%d > %d)", l.minutes, now))
	}
	return now - l.minutes, nil
}
