package format

import (
	"testing"
	"unicode/utf8"

	"github.com/berth-hpc/berth/internal/printable"
)

// FuzzFit checks that fit pads and truncates by characters.
func FuzzFit(f *testing.F) {
	f.Add("a\x1b]0;x\a")
	f.Fuzz(func(t *testing.T, s string) {
		if b := fit([]byte(printable.Escape(s)), 0, 5, true); utf8.RuneCount(b) != 5 {
			t.Errorf("%q: fit returns %q", s, b)
		}
	})
}

func TestDurations(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0:00", 29: "0:29", 300: "5:00", 3599: "59:59", 3723: "1:02:03", 86399: "23:59:59",
		93840: "1-02:04:00", 864000: "10-00:00:00", -1: "INVALID",
	} {
		if got := string(AppendDuration(nil, seconds)); got != want {
			t.Errorf("%d: %q, want %q", seconds, got, want)
		}
	}
	if got := string(AppendDurationLong(nil, 300)); got != "00:05:00" {
		t.Error(got)
	}
	if got := string(AppendMinutes(nil, -1)); got != "UNLIMITED" {
		t.Error(got)
	}
}

func TestEpochTimeFormat(t *testing.T) {
	s := &Settings{Layout: TimeLayout("%s|%H")}
	if got := string(AppendInstant(nil, 1800000000, "N/A", s)); got != "1800000000|08" {
		t.Error(got)
	}
}

func TestMemory(t *testing.T) {
	for mib, want := range map[int64]string{0: "0", 100: "100M", 1024: "1G", 1500: "1500M", 2048: "2G", 1 << 20: "1T"} {
		if got := string(AppendMemory(nil, mib, &Settings{})); got != want {
			t.Errorf("%d: %q, want %q", mib, got, want)
		}
	}
	if got := string(AppendMemory(nil, 2048, &Settings{NoConvert: true})); got != "2048M" {
		t.Error(got)
	}
}
