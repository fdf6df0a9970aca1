package query

import (
	"net/url"
	"runtime"
	"testing"
)

// FuzzParse parses the query of GET jobs, which must take memory in proportion to
// its length, whatever ranges it has.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"id=1_[0-3999999],2_3,4+1,5_*", "id=1_[1-9:2,7]%2&id=1_4", "nodes=n[1-65535],m[0-9][0-9]&state=all", "user=me&partition=a,b&name=%zz",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckSize(text) != nil {
			return
		}
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		q, err := Parse(values)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, 64<<10+1000*uint64(len(text)); got > most {
			t.Errorf("%d bytes of query took %d bytes of memory", len(text), got)
		}
		if err != nil {
			return
		}
		for id, tasks := range q.Tasks {
			if len(tasks) == 0 {
				t.Errorf("the query has no task of %d", id)
			}
		}
	})
}
