package usage

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/translate/status"
)

func usageRun(serial int, user, qos string, start, length int64) *status.Record {
	return &status.Record{UID: fmt.Sprint(serial), State: "COMPLETED", User: user, QOS: qos,
		Start: start, End: start + length, AllocTRES: "billing=2,cpu=2,mem=1M"}
}

// weightedSum returns the usage of a run by definition: that of each hour, with
// the weight of the hour's middle.
func weightedSum(r *status.Record, now time.Time, half time.Duration, since time.Time) (cpu float64) {
	for from := r.Start; from < r.End; {
		hour := from / 3600
		to := min(r.End, (hour+1)*3600)
		if since.IsZero() || (hour+1)*3600 > since.Unix() {
			weight := 1.0
			if age := now.Unix() - hour*3600 - 1800; half > 0 && age > 0 {
				weight = math.Exp2(-float64(age) / half.Seconds())
			}
			cpu += 2 * float64(to-from) * weight
		}
		from = to
	}
	return cpu
}

// Usage equals its definition whatever the half-life, and in whatever order runs
// are added and queries made.
func TestUsageIsTheWeightedSumOfAllRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := New()
		var runs []*status.Record
		now := time.Unix(1_800_000_000, 0)
		half := []time.Duration{0, time.Hour, 14 * 24 * time.Hour}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "runs") {
				length := rapid.Int64Range(1, 20*3600).Draw(t, "length")
				ago := rapid.Int64Range(0, 100*3600).Draw(t, "ago")
				r := usageRun(
					len(runs),
					"anna",
					rapid.SampledFrom([]string{"low", "high"}).Draw(t, "qos"),
					now.Unix()-ago-length,
					length,
				)
				runs = append(runs, r)
				u.Add(r)
				u.Add(r)
			}
			half, since := rapid.SampledFrom(half).Draw(t, "half"), time.Time{}
			if rapid.Bool().Draw(t, "reset") {
				since = now.Add(-time.Duration(rapid.Int64Range(0, 50).Draw(t, "since")) * time.Hour)
			}
			used, byQOS := u.Used(&Query{
				Now: now, HalfLife: half, Since: since, Factor: func(string) float64 { return 3 },
				NoDecay: func(qos string) bool { return qos == "high" },
			})
			want, low, high := 0.0, 0.0, 0.0
			for _, r := range runs {
				want += 3 * weightedSum(r, now, half, since)
				if r.QOS == "low" {
					low += 3 * weightedSum(r, now, half, since)
				} else {
					high += 3 * weightedSum(r, now, 0, time.Time{})
				}
			}
			for what, v := range map[string][2]float64{
				"anna": {used[status.AssociationKey{User: "anna"}]["cpu"], want}, "low": {byQOS["low"]["cpu"], low}, "high": {byQOS["high"]["cpu"], high},
			} {
				if math.Abs(v[0]-v[1]) > 1e-6*(1+v[1]) {
					t.Fatalf("%s used %v, want %v (half-life %v, since %v)", what, v[0], v[1], half, since)
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 30*3600).Draw(t, "later")) * time.Second)
		}
	})
}

// What is older than the Horizon is dropped, with the names of its records, and
// does not come back.
func TestUsageIsPruned(t *testing.T) {
	u := New()
	now := time.Unix(1_800_000_000, 0)
	old := now.Add(-Horizon)
	u.Add(usageRun(1, "anna", "", old.Unix()-30*3600, 3600))
	u.Add(usageRun(2, "ben", "", old.Unix()-30*3600, 60*3600))
	u.Used(&Query{Now: now})
	u.Prune(now)
	if len(u.byOwner) != 1 || len(u.counted) != 1 {
		t.Errorf("%d associations and %d records are left, want 1 and 1", len(u.byOwner), len(u.counted))
	}
	u.Add(usageRun(1, "anna", "", old.Unix()-30*3600, 3600))
	used, _ := u.Used(&Query{Now: now})
	if cpu := used[status.AssociationKey{User: "ben"}]["cpu"]; cpu < 2*29*3600 || cpu > 2*31*3600 ||
		used[status.AssociationKey{User: "anna"}]["cpu"] != 0 {
		t.Errorf("used: %v", used)
	}
}

func BenchmarkUsage(b *testing.B) {
	u := New()
	now := time.Unix(1_800_000_000, 0)
	for user := range 200 {
		u.Add(usageRun(user, fmt.Sprint(user), "normal", now.Add(-300*24*time.Hour).Unix(), 300*24*3600))
	}
	for b.Loop() {
		u.Used(&Query{Now: now, HalfLife: 7 * 24 * time.Hour})
		now = now.Add(10 * time.Second)
	}
}
