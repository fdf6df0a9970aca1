package sstat

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// TestWidths compares the widths of the default columns with those of sstat 22.05.8.
func TestWidths(t *testing.T) {
	want := []int{
		12, 10, 14, 14, 10, 10, 10, 10, 10, 8, 12, 14, 10, 10, 10, 10,
		10, 8, 10, 13, 13, 13, 14, 12, 15, 15, 12, 12, 16, 16, 12, 14,
		14, 18, 18, 14, 18, 18, 14, 15, 15, 19, 19, 15, 19, 19, 15,
	}
	var got []int
	for name := range strings.SplitSeq(defaults, ",") {
		for _, f := range table {
			if f.Name == name {
				got = append(got, f.Width)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// As in sstat 22.05.8, a job or step counts once for each time that it is named in the same
// way, and a step counts beside its job.
func TestNamedTwiceCountsOnce(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-j 7,7", "7"}, {"-j 7 -j 7", "7"}, {"-j 7.0,7.0", "7.0"}, {"-j 7 7 7", "7"},
		{"-j 7,7.0", "7 7.0"}, {"-j 8,7,8", "8 7"},
	} {
		v, rest, err := option.Sstat.Parse(strings.Fields(tt.args), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		o := New(&stdio.Process{Now: time.Now}, nil)
		if err := o.complete(v, rest); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range o.jobs {
			name := j.job
			if j.one {
				name += "." + j.name
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}
