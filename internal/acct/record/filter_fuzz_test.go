package record

import (
	"runtime"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// FuzzFilter reads ids of sacct -j, which must take memory in proportion
// to their length and name the job that they begin with.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"12", "12_[1-3,5]", "12_*", "12+1", "12_[0-3999999],13.batch", "007_1-5:2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		q := &status.RecordQuery{Jobs: strings.Split(text, ",")}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		filter := NewFilter(q)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, 64<<10+1000*uint64(len(text)); got > most {
			t.Errorf("%d bytes of ids took %d bytes of memory", len(text), got)
		}
		for id, patterns := range filter.ids {
			for _, p := range patterns {
				if r := (&status.Record{ID: id}); p.tasks == nil && p.het < 0 && !filter.Match(r) {
					t.Errorf("%q does not match job %d", text, id)
				}
			}
		}
	})
}
