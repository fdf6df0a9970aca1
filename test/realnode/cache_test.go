package realnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCachedBuildsOnceAndKeepsNoIncompleteBuild(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(cacheVariable, dir)
	broken := errors.New("broken")
	_, err := cached(t.Context(), "thing", "k1", func(_ context.Context, path string) error {
		must(t, os.WriteFile(path, []byte("half"), 0o644))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	built := 0
	for range 2 {
		path, err := cached(t.Context(), "thing", "k1", func(_ context.Context, path string) error {
			built++
			return os.WriteFile(path, []byte("whole"), 0o644)
		})
		must(t, err)
		if b, err := os.ReadFile(path); err != nil || string(b) != "whole" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if built != 1 {
		t.Errorf("built %d times", built)
	}
	if keyOf("a", "bc") == keyOf("ab", "c") {
		t.Error("keys do not tell parts apart")
	}
}

// TestCachedBuildsOnceForAll: concurrent calls wait while the first one builds.
func TestCachedBuildsOnceForAll(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	var built atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			// A directory cannot be moved over another one.
			path, err := cached(t.Context(), "thing", "k1", func(_ context.Context, path string) error {
				built.Add(1)
				return errors.Join(os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(path, "whole"), nil, 0o644))
			})
			if err != nil || !exists(filepath.Join(path, "whole")) {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	all.Wait()
	if n := built.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
