package acct

import (
	"math"
	"time"
)

// decay says how usage is weighed. The zero value counts everything alike.
type decay struct {
	halfLife time.Duration // 0: nothing fades
	since    int64         // hours that ended before it do not count; 0: all do
}

// weight is what usage in the hour counts for at now: that of its middle, and
// at most 1.
func (d decay) weight(hour, now int64) float64 {
	if d.since != 0 && (hour+1)*3600 <= d.since {
		return 0
	}
	return d.fade(now - hour*3600 - 1800)
}

// fade is what is left after so many seconds.
func (d decay) fade(seconds int64) float64 {
	if d.halfLife <= 0 || seconds <= 0 {
		return 1
	}
	return math.Exp2(-float64(seconds) / d.halfLife.Seconds())
}

// runningSum is the weighed sum over all hours before until, as it was at the
// instant at, which is not before the end of these hours.
type runningSum struct {
	at, until int64
	tres      map[string]float64
}

// add counts usage in an hour.
func (h *history) add(hour int64, name string, amount float64) {
	bucket := h.hours[hour]
	if bucket == nil {
		bucket = map[string]float64{}
		h.hours[hour] = bucket
		h.last = max(h.last, hour)
	}
	bucket[name] += amount
	for d, s := range h.sums {
		if hour < s.until {
			s.tres[name] += amount * d.weight(hour, s.at)
		}
	}
}

// sum returns the weighed sum at now over all hours.
func (h *history) sum(d decay, now int64) map[string]float64 {
	s := h.settle(d, now)
	out := make(map[string]float64, len(s.tres))
	for name, n := range s.tres {
		out[name] = n
	}
	for hour := s.until; hour <= h.last; hour++ {
		addTo(out, h.hours[hour], d.weight(hour, now))
	}
	return out
}

// settle returns the sum at now over the hours that are over.
func (h *history) settle(d decay, now int64) *runningSum {
	until := now / 3600
	s := h.sums[d]
	if s == nil || now < s.at {
		s = &runningSum{at: now, until: until, tres: map[string]float64{}}
		for hour, tres := range h.hours {
			if hour < until {
				addTo(s.tres, tres, d.weight(hour, now))
			}
		}
		h.sums[d] = s
		return s
	}
	for name := range s.tres {
		s.tres[name] *= d.fade(now - s.at)
	}
	for hour := s.until; hour < min(until, h.last+1); hour++ {
		addTo(s.tres, h.hours[hour], d.weight(hour, now))
	}
	s.at, s.until = now, until
	return s
}
