package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const soakRate = 20 // logins per second

// soak is how long the soak test lasts.
var soak time.Duration

// soakReport has the processes and goroutines that a soak test left, and the memory of the
// server before and after it, in MB.
type soakReport struct {
	processes, goroutines, before, after float64
}

// soak lets clients log in at a constant rate; a third of them disconnect in the middle of a
// session. It returns how many descriptors of the server are left, and sets r.soaked.
func (r *rig) soak(t *target) (float64, error) {
	// A server that has served clients uses more resources than a fresh one.
	if err := r.visits(t, min(soak/10, time.Minute)); err != nil {
		return 0, err
	}
	awaitCleanup(t)
	began, processes := usageOf(t), len(r.pids())
	stop := r.watch(t, soak/10)
	err := r.visits(t, soak)
	stop()
	left := awaitZero(func() int { return filesOf(t) - began.files })
	r.soaked.processes = float64(awaitZero(func() int { return len(r.pids()) - processes }))
	r.soaked.goroutines = float64(awaitZero(func() int { return goroutinesOf(t) - began.goroutines }))
	r.soaked.before, r.soaked.after = float64(began.kilobytes)/1e3, float64(pss(t))/1e3
	return float64(left), err
}

// visits lets clients log in for the given time.
func (r *rig) visits(t *target, while time.Duration) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	tick := time.NewTicker(time.Second / soakRate)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < while; <-tick.C {
		wg.Go(func() {
			if err := r.visit(t, rand.IntN(3) == 0); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

// visit logs in and runs a command, or disconnects while it runs.
func (r *rig) visit(t *target, disconnect bool) error {
	c, s, err := r.terminal(t)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if !disconnect {
		return s.Run("true")
	}
	if err := s.Start("sleep 1000 & sleep 1000"); err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	return nil
}

// usage has the resources of a server at one moment.
type usage struct{ files, goroutines, kilobytes int }

func usageOf(t *target) usage { return usage{filesOf(t), goroutinesOf(t), pss(t)} }

// awaitCleanup waits until the server's use of descriptors and goroutines no longer falls.
func awaitCleanup(t *target) {
	last := usageOf(t)
	awaitZero(func() int {
		now := usageOf(t)
		released := last.files - now.files + last.goroutines - now.goroutines
		last = now
		return released
	})
}

// watch prints the resources of the server at the interval, until stop is called.
func (r *rig) watch(t *target, every time.Duration) (stop func()) {
	done := make(chan struct{})
	began := time.Now()
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				u := usageOf(t)
				fmt.Fprintf(os.Stderr, "soak %s: %.1f MB, %d descriptors, %d goroutines, %d processes of the user\n",
					time.Since(began).Round(time.Second), float64(u.kilobytes)/1e3, u.files, u.goroutines,
					len(r.pids()))
			}
		}
	}()
	return func() { close(done) }
}

// goroutinesOf returns the number of goroutines that the server reports, or 0.
func goroutinesOf(t *target) int {
	resp, err := http.Get(t.metrics) //nolint:noctx // a server on this machine
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "berth_login_goroutines "); ok {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}
