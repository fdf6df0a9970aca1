package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// system is a scheduler with Slurm's commands.
type system struct {
	name string
	bin  string // directory of its commands
	env  []string
	dir  string // where jobs are submitted
	stop func()
}

// command is one of the system's commands, run in its directory.
func (s *system) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// output runs a command and returns its output; an error includes it.
func (s *system) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := s.command(ctx, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// startBerth measures berth up and leaves a cluster for the suite running.
func startBerth(ctx context.Context, what *suite, bin, work string) (*system, samples, error) {
	state := filepath.Join(work, "berth-state")
	s := &system{name: "Berth", bin: bin, dir: filepath.Join(work, "berth")}
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(state, "kubeconfig"))
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, nil, err
	}
	down := func() error {
		_, err := s.output(context.WithoutCancel(ctx), "berth", "down", "--state-dir", state)
		return err
	}
	s.stop = func() { _ = down() }
	var times samples
	for i := range what.ups {
		say("Berth: berth up")
		start := time.Now()
		if _, err := s.output(ctx, "berth", slices.Concat([]string{"up", "--fresh", "--state-dir", state},
			what.up)...); err != nil {
			return s, nil, err
		}
		times = append(times, time.Since(start))
		if i == what.ups-1 {
			break
		}
		if err := down(); err != nil {
			return nil, nil, err
		}
	}
	return s, times, nil
}

// startAlone starts a local cluster with these flags of berth up, for a suite that measures
// no Slurm beside it. state is the cluster's directory. stop ends the cluster and removes
// its files; it has to be called even if there is an error.
func startAlone(ctx context.Context, o options, up ...string) (s *system, state string, stop func(), err error) {
	stop = func() {}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, "", stop, err
	}
	work, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return nil, "", stop, err
	}
	s, _, err = startBerth(ctx, &suite{up: up, ups: 1}, bin, work)
	stop = func() {
		if s != nil {
			s.stop()
		}
		_ = os.RemoveAll(work)
	}
	return s, filepath.Join(work, "berth-state"), stop, err
}

// findSlurm returns the Slurm that answers on this machine, or nil. directory
// "": the one in PATH, unless that is ours.
func findSlurm(ctx context.Context, directory, work, ours string) *system {
	if directory == "none" {
		return nil
	}
	if directory == "" {
		path, err := exec.LookPath("sbatch")
		if err != nil || filepath.Dir(path) == ours {
			say("no Slurm in PATH; measuring Berth alone")
			return nil
		}
		directory = filepath.Dir(path)
	}
	s := &system{name: "Slurm", bin: directory, env: os.Environ(), dir: filepath.Join(work, "slurm"), stop: func() {}}
	version, err := s.answers(ctx)
	if err != nil {
		say("Slurm at %s does not answer (%v); measuring Berth alone", directory, err)
		return nil
	}
	fields := strings.Fields(version) // "slurm 22.05.8", by Debian "slurm-wlm 22.05.8"
	s.name = "Slurm " + fields[len(fields)-1]
	return s
}

func (s *system) answers(ctx context.Context) (version string, err error) {
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return "", err
	}
	if version, err = s.output(ctx, "sinfo", "--version"); err != nil {
		return "", err
	}
	if version == "" {
		return "", errors.New("it does not say its version")
	}
	nodes, err := s.output(ctx, "sinfo", "-h", "-t", "idle", "-o", "%D")
	if err == nil && nodes == "" {
		err = errors.New("it has no idle nodes")
	}
	return version, err
}
