package alloc

import (
	"bytes"
	"errors"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// TestImmediate checks the messages of --immediate against those of Slurm 22.05.8.
func TestImmediate(t *testing.T) {
	const revoked = "salloc: Job allocation 7 has been revoked.\n"
	for _, c := range []struct {
		client Client
		want   string
	}{
		{Client{Name: "salloc"}, "salloc: error: " + textTimeout + "\n" + revoked},
		{Client{Name: "salloc", Unowned: true}, "salloc: error: " + textTimeout + "\n"},
		{Client{Name: "salloc", Quiet: true}, "salloc: error: " + textTimeout + "\n"},
		{Client{Name: "srun"}, "srun: error: " + textBusy + "\n"},
	} {
		w := &wait{a: &Allocation{client: &c.client}, settled: make(chan struct{})}
		w.expire()
		var out bytes.Buffer
		slurmerr.Print(&out, c.client.Name, c.client.withRevoked(7, w.result()))
		if out.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.client, out.String(), c.want)
		}
	}
	other := slurmerr.New(slurmerr.Refused, "x")
	if err := (&Client{Name: "salloc"}).withRevoked(7, other); !errors.Is(err, other) || other.After != "" {
		t.Errorf("another error: %v, %q", err, other.After)
	}
}
