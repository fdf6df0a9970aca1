package value

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-hpc/berth/translate/job"
)

// The vectors of package translate compare most values with Slurm's. The tests of this
// package cover the others.

func TestInstantWithoutDate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 7, 46, 0, time.UTC)
	for text, want := range map[string]string{
		"10:00": "2026-11-22T10:00:00", "23:59": "2026-11-21T23:59:00", "noon": "2026-11-22T12:00:00",
		"midnight": "2026-11-22T00:00:00",
		"fika":     "2026-11-21T15:00:00", "teatime": "2026-11-21T16:00:00", "5:30pm": "2026-11-21T17:30:00",
		"12:30am": "2026-11-22T00:30:00",
		"1/2":     "2027-01-02T00:00:00", "0102": "2027-01-02T00:00:00", "7/4 10:00": "2027-07-04T10:00:00",
		"10:00 07/04": "2027-07-04T10:00:00",
		"10:00:30":    "2026-11-22T10:00:30", "12:00AM": "2026-11-22T00:00:00", "16:00 1/2/30": "2030-01-02T16:00:00",
		"now": "2026-11-21T12:07:46",
	} {
		got, err := Instant(text, now)
		if err != nil || got.Format("2006-01-02T15:04:05") != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
	for text, pos := range map[string]int{"5pm": 1, "12am": 2, "noon+1hour": 4, "2030-1-2": 0, "now+3x": 4, "now-20min": 5, "now-x": 3, "elevenses": 0} {
		_, err := Instant(text, now)
		if e, ok := errors.AsType[*InstantError](err); !ok || e.Pos != pos {
			t.Errorf("%s: %v, want position %d", text, err, pos)
		}
	}
}

func TestUnixSeconds(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 7, 46, 0, time.UTC)
	for _, text := range []string{"uts1700000000", "UTS1700000000"} {
		for name, parse := range map[string]func(string, time.Time) (time.Time, error){
			"Instant": Instant, "PastInstant": PastInstant,
		} {
			if got, err := parse(text, now); err != nil || got.Unix() != 1700000000 {
				t.Errorf("%s(%s): %v, %v", name, text, got, err)
			}
		}
	}
}

// TestArrayIgnoresEmptyElements: as in Slurm, also missing brackets, and without an index there
// is the one with number 0.
func TestArrayIgnoresEmptyElements(t *testing.T) {
	for text, want := range map[string]string{"1,,2": "1-2", ",1": "1", "1,": "1", "1-3,": "1-3",
		"%1": "0%1", ",%1": "0%1", "[]": "0", "[1-3": "1-3", "1-3]": "1-3", "[%1]": "0%1", "1%1%2": "1%1", "2%x": "2"} {
		if a, err := Array(text); err != nil || a.Spec != want {
			t.Errorf("%s: %+v, %v; want %s", text, a, err, want)
		}
	}
}

func TestDefaultDistributionOfCores(t *testing.T) {
	for text, want := range map[string]string{
		"*:block:*": "block:block:block", "cyclic:block:*": "cyclic:block:block",
		"*:fcyclic:*": "block:fcyclic:fcyclic",
		"*:*:*":       "block:cyclic:cyclic",
	} {
		if got, err := Distribution(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestInvalidGRES(t *testing.T) {
	for _, text := range []string{"gpu:", "gpu=1", "gpu:tesla:"} {
		if list, err := GRES(text, job.PerNode); err == nil {
			t.Errorf("%s: %+v", text, list)
		}
	}
}

func TestGRES(t *testing.T) {
	for text, want := range map[string]job.GRES{
		"gpu": {Name: "gpu", Count: 1}, "gpu:2": {Name: "gpu", Count: 2},
		"gpu:a100:4": {Name: "gpu", Type: "a100", Count: 4},
		"gpu:a100":   {Name: "gpu", Type: "a100", Count: 1}, "gres:gpu:2": {Name: "gpu", Count: 2},
		"scratch:1k": {Name: "scratch", Count: 1024},
	} {
		want.Per = job.PerNode
		got, err := GRES(text, job.PerNode)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	if _, err := GRES("gpu:a:b", job.PerNode); err == nil {
		t.Error("gpu:a:b is accepted")
	}
	for text, want := range map[string]string{"a=1:2": "gpu:a=1:2", "a=2": "gpu:a=2:1", "=:3": "gpu:=:3", "=": "gpu:=:1",
		"=:": "", "a:b=2": "", ":=0": ""} { // as Slurm 22.05.8 reads them
		got, err := GPUs(text, job.PerJob)
		if FormatGRES(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v, want %q", text, FormatGRES(got), err, want)
		}
	}
	if got, err := GPUs("a100:2,v100:1", job.PerJob); err != nil || len(got) != 2 || got[1].Type != "v100" {
		t.Errorf("%+v %v", got, err)
	}
}
