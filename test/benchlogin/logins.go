package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	background = 50  // logins per second
	silent     = 300 // peers that never log in
	flooders   = 200 // terminals that print 1 MB/s each
	echoes     = 100 // keys whose echo is measured
	refusals   = 60  // refused logins that are measured
)

func median(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }

func percentile(v []float64, p int) float64 { slices.Sort(v); return v[(len(v)-1)*p/100] }

func millisecondsSince(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1000 }

// rate returns how many logins per second several clients achieve, with a command; "": none.
func (r *rig) rate(t *target, command string) (float64, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	done, began := 0, time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(began) < perTurn {
				err := r.once(t, command)
				mu.Lock()
				done++
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(done) / time.Since(began).Seconds(), failed
}

// latency returns the median time of a login alone, in ms.
func (r *rig) latency(t *target) (float64, error) {
	var all []float64
	for range 30 {
		began := time.Now()
		if err := r.once(t, ""); err != nil {
			return 0, err
		}
		all = append(all, millisecondsSince(began))
	}
	return median(all), nil
}

// underLoad returns the 99th percentile of the time of a login, in ms, at a constant rate of
// logins.
func (r *rig) underLoad(t *target) (float64, error) {
	var mu sync.Mutex
	var all []float64
	var failed error
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / background)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < perTurn; <-tick.C {
		wg.Go(func() {
			at := time.Now()
			err := r.once(t, "")
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, millisecondsSince(at)), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return 0, failed
	}
	return percentile(all, 99), nil
}

// underAttack returns the 99th percentile of the time of a login, in ms, while other clients
// hold connections without logging in.
func (r *rig) underAttack(t *target) (float64, error) {
	for range silent {
		c, err := net.Dial("tcp", t.addr)
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
	}
	var all []float64
	for began := time.Now(); time.Since(began) < perTurn; {
		at := time.Now()
		if err := r.once(t, "true"); err != nil {
			return 0, err
		}
		all = append(all, millisecondsSince(at))
	}
	return percentile(all, 99), nil
}

// flood is a loop of bash that prints 1 MB/s and starts no processes in it, which would affect
// the measurement.
const flood = `x=$(head -c 102400 /dev/zero | tr '\0' x); exec 3<> <(:); while ! read -r -t 0.1 -u 3 _; do printf %s "$x"; done`

// fairness returns the 99th percentile of the time, in ms, from a key in a terminal to its
// echo, while other terminals print 1 MB/s each.
func (r *rig) fairness(t *target) (float64, error) {
	var floods []io.Writer
	for range flooders {
		c, s, err := r.terminal(t)
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
		s.Stdout = io.Discard
		in, err := s.StdinPipe()
		if err != nil {
			return 0, err
		}
		floods = append(floods, in)
		// Each flood waits for a line, since logins beside a flood take long.
		if err := s.Start("read -r _; " + flood); err != nil {
			return 0, err
		}
	}
	c, s, err := r.terminal(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	in, err1 := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	if err := errors.Join(err1, err2, s.Start("stty raw -echo; exec cat")); err != nil {
		return 0, err
	}
	for _, in := range floods {
		if _, err := in.Write([]byte("\n")); err != nil {
			return 0, err
		}
	}
	time.Sleep(500 * time.Millisecond) // stty has set the modes, and the floods print
	var all []float64
	key := make([]byte, 1)
	began := time.Now()
	for range echoes {
		if time.Since(began) > 5*perTurn { // enough, on a busy machine
			break
		}
		at := time.Now()
		if _, err := in.Write([]byte("k")); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(out, key); err != nil {
			return 0, err
		}
		all = append(all, millisecondsSince(at))
		time.Sleep(10 * time.Millisecond)
	}
	return percentile(all, 99), nil
}

// enumeration returns by how many percent refusing an existing user takes longer than refusing
// one that does not exist (docs/login-node.md, S19: at most 20 either way).
func (r *rig) enumeration(t *target) (float64, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return 0, err
	}
	stranger, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return 0, err
	}
	times := map[bool][]float64{}
	for i := range refusals {
		known := i%2 == 0
		user := r.user
		if !known {
			user = "no-such-user"
		}
		at := time.Now()
		c, err := ssh.Dial("tcp", t.addr, &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(stranger)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
			Timeout: 30 * time.Second,
		})
		if err == nil {
			_ = c.Close()
			return 0, errors.New("a login with an unknown key succeeded")
		}
		times[known] = append(times[known], float64(time.Since(at).Microseconds()))
	}
	return 100 * (median(times[true])/median(times[false]) - 1), nil
}
