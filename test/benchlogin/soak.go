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

const soakRate = 20 // logins a second

var soak time.Duration

// soakReport has what a soak test left, and the resources of the server before and
// after.
type soakReport struct {
	processes, goroutines, before, after float64 // the latter two in MB
}

// soak lets clients log in at a steady rate, a third of which vanish in the middle of a
// session. It returns how many descriptors of the server they left.
func (r *rig) soak(t *target) (float64, error) {
	// A server that has served clients uses more resources than a fresh one.
	if err := r.visits(t, min(soak/10, time.Minute)); err != nil {
		return 0, err
	}
	r.quiet(t)
	began, processes := r.state(t), r.processes()
	stop := r.watch(t, soak/10)
	err := r.visits(t, soak)
	stop()
	left := settled(func() int { return filesOf(t) - began.files })
	r.soaked.processes = float64(settled(func() int { return r.processes() - processes }))
	r.soaked.goroutines = float64(settled(func() int { return goroutinesOf(t) - began.goroutines }))
	r.soaked.before, r.soaked.after = float64(began.kilobytes)/1e3, float64(pss(t))/1e3
	return float64(left), err
}

// visits lets clients come for a while.
func (r *rig) visits(t *target, while time.Duration) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	tick := time.NewTicker(time.Second / soakRate)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < while; <-tick.C {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := r.visit(t, rand.IntN(3) == 0); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return failed
}

// visit logs in, works, and leaves, or vanishes.
func (r *rig) visit(t *target, vanish bool) error {
	c, s, err := r.terminal(t)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if !vanish {
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

func (r *rig) state(t *target) usage { return usage{filesOf(t), goroutinesOf(t), pss(t)} }

// quiet waits until nothing of clients that have gone is left to be cleared.
func (r *rig) quiet(t *target) {
	last := r.state(t)
	settled(func() int {
		now := r.state(t)
		more := last.files - now.files + last.goroutines - now.goroutines
		last = now
		return more
	})
}

// watch prints the resources of the server from time to time, until it is stopped.
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
				u := r.state(t)
				fmt.Fprintf(os.Stderr, "soak %s: %.1f MB, %d descriptors, %d goroutines, %d processes of the user\n",
					time.Since(began).Round(time.Second), float64(u.kilobytes)/1e3, u.files, u.goroutines,
					r.processes())
			}
		}
	}()
	return func() { close(done) }
}

// goroutinesOf returns the number that the server reports; 0 if it reports none.
func goroutinesOf(t *target) int {
	a, err := http.Get(t.metrics) //nolint:noctx // a bench's own server
	if err != nil {
		return 0
	}
	defer func() { _ = a.Body.Close() }()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "berth_login_goroutines "); ok {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}
