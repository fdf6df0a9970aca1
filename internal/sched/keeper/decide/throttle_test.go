package decide

import (
	"testing"
	"time"
)

func TestThrottledJobKeepsItsNodes(t *testing.T) {
	late := t0.Add(10 * rules.StartTimeout)
	f := Facts{Job: aJob("CONFIGURING"), Now: t0, Rules: rules, StartThrottled: true, Lost: never, Unreachable: never}
	if a := Next(f); a.Kind != WaitStart || !a.Wake.Equal(t0.Add(ThrottlePause)) {
		t.Errorf("a throttled job does not wait for its turn: %+v", a)
	}
	f.Now, f.Progress = late, Progress{Attempt: 2, Queued: true}
	if a := Next(f); a.Kind != WaitStart {
		t.Errorf("a throttled job does not wait any longer: %+v", a)
	}
	if f.StartThrottled = false; Next(f).Kind != Create {
		t.Errorf("a job whose turn it is does not start: %+v", Next(f))
	}
	f.Progress.Created, f.Progress.CreatedAt = true, late
	if a := Next(f); a.Kind != Wait || !a.Wake.Equal(late.Add(rules.StartTimeout)) {
		t.Errorf("the agents of a job that was throttled have less time: %+v", a)
	}
	f.Now = late.Add(rules.StartTimeout + time.Second)
	if a := Next(f); a.Kind != End || a.Outcome.Final != "PENDING" {
		t.Errorf("%+v", a)
	}
}
