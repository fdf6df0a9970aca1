package usage

import (
	"maps"
	"math"
	"time"
)

// decay is how usage is weighted by age. With the zero value all usage has the weight
// 1.
type decay struct {
	halfLife time.Duration // 0: usage does not decay
	since    int64         // hours that ended before it do not count; 0: all do
}

// weight returns the weight at now of usage in the hour: that of its middle, and
// at most 1.
func (d decay) weight(hour, now int64) float64 {
	if d.since != 0 && (hour+1)*3600 <= d.since {
		return 0
	}
	return d.remaining(now - hour*3600 - 1800)
}

// remaining returns the fraction that remains after a time.
func (d decay) remaining(seconds int64) float64 {
	if d.halfLife <= 0 || seconds <= 0 {
		return 1
	}
	return math.Exp2(-float64(seconds) / d.halfLife.Seconds())
}

// runningSum is the weighted sum over all hours before until, at the time at,
// which is not before the end of these hours.
type runningSum struct {
	at, until int64
	tres      map[string]float64
}

// add adds usage in an hour, also to the sums that include the hour.
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

// sum returns the weighted sum at now over all hours.
func (h *history) sum(d decay, now int64) map[string]float64 {
	s := h.pastSum(d, now)
	out := maps.Clone(s.tres)
	for hour := s.until; hour <= h.last; hour++ {
		addWeighted(out, h.hours[hour], d.weight(hour, now))
	}
	return out
}

// pastSum returns the weighted sum at now over the hours that have ended. It
// brings the cached sum to now.
func (h *history) pastSum(d decay, now int64) *runningSum {
	until := now / 3600
	s := h.sums[d]
	if s == nil || now < s.at {
		s = &runningSum{at: now, until: until, tres: map[string]float64{}}
		for hour, tres := range h.hours {
			if hour < until {
				addWeighted(s.tres, tres, d.weight(hour, now))
			}
		}
		h.sums[d] = s
		return s
	}
	for name := range s.tres {
		s.tres[name] *= d.remaining(now - s.at)
	}
	for hour := s.until; hour < min(until, h.last+1); hour++ {
		addWeighted(s.tres, h.hours[hour], d.weight(hour, now))
	}
	s.at, s.until = now, until
	return s
}
