package realnode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// cacheVariable names the directory for what is built once and reused; the default is
// ~/.cache/berth-e2e.
const cacheVariable = "BERTH_CACHE"

func cacheDir() (string, error) {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "berth-e2e"), nil
}

// cached returns the path of a file or directory of the cache. If it does not exist, build
// creates it at a temporary path, which is then renamed, so that an interrupted run
// leaves nothing incomplete. The key must name everything that the content depends on.
func cached(ctx context.Context, name, key string, build func(ctx context.Context, path string) error) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+"-"+key)
	if exists(path) {
		return path, nil
	}
	// Concurrent runs need the same: one of them builds it.
	lock, err := lockDir(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(path) {
		return path, nil
	}
	began := time.Now()
	progress("making %s", name)
	tmp, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, name)
	if err := build(ctx, made); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	progress("made %s in %.0f s", name, time.Since(began).Seconds())
	return path, os.Rename(made, path)
}

// lockDir waits for the lock of a directory, which closing it releases.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// keyOf returns a short key of everything that the content depends on.
func keyOf(parts ...string) string {
	h := sha256.New()
	for _, p := range append(parts, runtime.GOARCH, runtime.Version()) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "realnode: "+format+"\n", args...)
}

// run runs a program and returns its output with the error.
func run(ctx context.Context, dir string, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, tail(out, 4000))
	}
	return nil
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}
