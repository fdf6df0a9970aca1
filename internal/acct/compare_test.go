package acct

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// The order is that of sacct 22.05.8 for jobs that were submitted within one second and for
// a later one.
func TestOrderOfRecords(t *testing.T) {
	records := []status.Record{
		{ID: 3470, Submit: 2},
		{ID: 3471, ArrayJobID: 3471, ArrayTaskID: "0,2-5%2", Submit: 1},
		{ID: 3475, Submit: 1},
		{ID: 3480, ArrayJobID: 3471, ArrayTaskID: "1", Submit: 1},
		{ID: 3469, Submit: 1},
	}
	slices.SortFunc(records, func(a, b status.Record) int { return compare(&a, &b) })
	var got []string
	for i := range records {
		got = append(got, format.AcctID(&records[i]))
	}
	const want = "3469 3475 3471_1 3471_[0,2-5%2] 3470"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
}
