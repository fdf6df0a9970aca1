package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
)

func TestMain(m *testing.M) {
	cluster.RunEtcdMember()
	os.Exit(m.Run())
}

// TestChaos is the short form of make chaos: two users for 40 s, and a fault about every 5 s.
// BERTH_TEST_SEED repeats a run.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes; not with -short")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "scheduler")); err != nil {
		t.Fatal("bin/scheduler is missing: run make build")
	}
	seed := uint64(time.Now().UnixNano() % 1e9)
	if text := os.Getenv("BERTH_TEST_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	o := &options{bin: bin, seed: seed, duration: 40 * time.Second, pause: 5 * time.Second, nodes: 3, users: 2,
		think: 500 * time.Millisecond, standby: true, etcd: -1, alter: -1}
	plan, err := o.faults()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, plan %s", seed, join(plan))
	h, err := o.run(t.Context(), plan, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(&out, h); err != nil {
		t.Error(err)
	}
	t.Log(out.String())
}
