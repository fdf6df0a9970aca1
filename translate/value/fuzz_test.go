package value

import (
	"reflect"
	"testing"
	"time"

	"github.com/berth-hpc/berth/translate/job"
)

// roundTrip fails unless again, parsed from the formatted value v, is equal to v.
func roundTrip[T any](t *testing.T, text string, v T, written string, again T, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(v, again) {
		t.Fatalf("%q: %+v was formatted as %q, which is parsed as %+v, %v", text, v, written, again, err)
	}
}

func FuzzMinutes(f *testing.F) {
	for _, s := range []string{"1-2:3:4", "5", "UNLIMITED", "-5", "1:2", "35791394:07"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Minutes(s)
		if err != nil {
			return
		}
		if n != job.Unlimited && n < 1 {
			t.Fatalf("%q: %d", s, n)
		}
		text := FormatMinutes(n)
		again, err := Minutes(text)
		roundTrip(t, s, n, text, again, err)
	})
}

func FuzzSeconds(f *testing.F) {
	f.Add("1-2:3:4")
	f.Add("90")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Seconds(s)
		if err != nil {
			return
		}
		text := FormatSeconds(n)
		again, err := Seconds(text)
		roundTrip(t, s, n, text, again, err)
	})
}

func FuzzMegabytes(f *testing.F) {
	f.Add("4G")
	f.Add(" +5KB")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Megabytes(s)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q: %d", s, n)
		}
		text := FormatMegabytes(n)
		again, err := Megabytes(text)
		roundTrip(t, s, n, text, again, err)
	})
}

func FuzzNodes(f *testing.F) {
	f.Add("1-2k")
	f.Add("-3")
	f.Fuzz(func(t *testing.T, s string) {
		least, most, err := Nodes(s)
		if err != nil {
			return
		}
		if least < 0 || most < least {
			t.Fatalf("%q: %d-%d", s, least, most)
		}
		text := FormatNodes(least, most)
		l, m, err := Nodes(text)
		roundTrip(t, s, [2]int32{least, most}, text, [2]int32{l, m}, err)
	})
}

func FuzzArray(f *testing.F) {
	f.Add("0-9:3%2")
	f.Add("[1,3-5]")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Array(s)
		if err != nil || len(a.Indexes) > 1000 {
			return
		}
		again, err := Array(a.Spec)
		roundTrip(t, s, a, a.Spec, again, err)
	})
}

func FuzzSignal(f *testing.F) {
	f.Add("B:USR1@60")
	f.Add("RB:65535@0")
	f.Fuzz(func(t *testing.T, s string) {
		sig, err := ParseSignal(s)
		if err != nil {
			return
		}
		if sig.Number < 1 || sig.Before < 0 {
			t.Fatalf("%q: %+v", s, sig)
		}
		text := FormatSignal(sig)
		again, err := ParseSignal(text)
		roundTrip(t, s, sig, text, again, err)
	})
}

func FuzzInstant(f *testing.F) {
	for _, s := range []string{"now+1hour", "2030-01-02T03:04", "16:00 1/2/30", "tomorrow 5:30pm", "uts1"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 12, 7, 46, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		at, err := Instant(s, now)
		if err != nil || at.Year() > 9999 || at.Year() < 1970 {
			return
		}
		text := at.Format("2006-01-02T15:04:05")
		again, err := Instant(text, now)
		roundTrip(t, s, at.Unix(), text, again.Unix(), err)
	})
}

func FuzzDependencies(f *testing.F) {
	f.Add("afterok:1_2:3,singleton")
	f.Add("after:1+5?afterany:2_*")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Dependencies(s)
		if err != nil {
			return
		}
		text := FormatDependencies(d)
		again, err := Dependencies(text)
		if d.Any && len(d.Items) < 2 {
			again.Any = true // the separator is not in the text
		}
		roundTrip(t, s, d, text, again, err)
	})
}

func FuzzGRES(f *testing.F) {
	f.Add("gpu:a100:4,x=1k")
	f.Add("gres:gpu")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := GRES(s, job.PerNode)
		if err != nil || len(list) == 0 {
			return
		}
		text := FormatGRES(list)
		again, err := GRES(text, job.PerNode)
		roundTrip(t, s, list, text, again, err)
	})
}

func FuzzGPUs(f *testing.F) {
	f.Add("a100:4,2")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := GPUs(s, job.PerJob)
		if err != nil {
			return
		}
		text := FormatGRES(list)
		again, err := GRES(text, job.PerJob)
		roundTrip(t, s, list, text, again, err)
	})
}

func FuzzTRES(f *testing.F) {
	f.Add("cpu=4,gres/gpu:a100=2")
	f.Add("gres:gpu:1")
	f.Fuzz(func(t *testing.T, s string) {
		cpus, list, err := TRES(s, job.PerTask)
		if err != nil {
			return
		}
		text := FormatTRES(cpus, list)
		c, l, err := TRES(text, job.PerTask)
		roundTrip(t, s, cpus, text, c, err)
		roundTrip(t, s, list, text, l, err)
	})
}

func FuzzBindings(f *testing.F) {
	f.Add("verbose,map_cpu:0,1")
	f.Add("prefer,mask_mem:0x1,0x2")
	f.Add("p,mask_mem:0x0,0XA")
	f.Add("mask_mem:1,b,p")
	f.Add("mAsk_mem:,")
	f.Fuzz(func(t *testing.T, s string) {
		CPUBind(s) //nolint:errcheck // it must not panic
		shown, err := MemBind(s)
		if err != nil || shown == "unset" {
			return
		}
		again, err := MemBind(shown)
		roundTrip(t, s, shown, shown, again, err)
	})
}

func FuzzDistribution(f *testing.F) {
	f.Add("block:cyclic:fcyclic,NoPack")
	f.Add("plane=4")
	f.Add("*:*")
	f.Fuzz(func(t *testing.T, s string) {
		shown, err := Distribution(s)
		if err != nil {
			return
		}
		again, err := Distribution(shown)
		roundTrip(t, s, shown, shown, again, err)
	})
}

func FuzzContainers(f *testing.F) {
	f.Add("docker://nvcr.io#nvidia/pytorch:24.01")
	f.Add("/a:/b:ro+rprivate,/c")
	f.Fuzz(func(t *testing.T, s string) {
		if ref, err := Image(s); err == nil {
			again, err := Image(ref)
			roundTrip(t, s, ref, ref, again, err)
		}
		mounts, err := Mounts(s)
		if err != nil {
			return
		}
		text := FormatMounts(mounts)
		again, err := Mounts(text)
		roundTrip(t, s, mounts, text, again, err)
	})
}

func BenchmarkArray10000(b *testing.B) {
	for b.Loop() {
		if _, err := Array("0-9999"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkArrayScattered10000 parses an array without consecutive indexes.
func BenchmarkArrayScattered10000(b *testing.B) {
	for b.Loop() {
		if _, err := Array("0-19999:2"); err != nil {
			b.Fatal(err)
		}
	}
}
