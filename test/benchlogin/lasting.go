package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	many     = 1000 // idle terminals
	silent   = 300  // peers that never log in
	flows    = 200
	flowSize = 512 << 10
)

// crowd has the results for many idle terminals.
type crowd struct{ peak, threads, files float64 }

// forwards returns the rate of many concurrent forwarded connections, in MB/s: each
// sends, ends its direction, and must receive the number of bytes.
func (r *rig) forwards(t *target) (float64, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				_, _ = fmt.Fprint(c, n)
			}()
		}
	}()
	c, err := r.dial(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	began := time.Now()
	failed := make(chan error, flows)
	for range flows {
		go func() { failed <- flow(c, l.Addr().String()) }()
	}
	for range flows {
		err = errors.Join(err, <-failed)
	}
	return flows * flowSize / 1e6 / time.Since(began).Seconds(), err
}

func flow(c *ssh.Client, to string) error {
	conn, err := c.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(make([]byte, flowSize)); err != nil {
		return err
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != strconv.Itoa(flowSize) {
		err = fmt.Errorf("%q of %d bytes came", got, flowSize)
	}
	return err
}

// underAttack is the 99th percentile of a login, ms, while others hold
// connections without logging in.
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
		all = append(all, float64(time.Since(at).Microseconds())/1000)
	}
	return percentile(all, 99), nil
}

// manyMemory opens many idle terminals and closes them.
func (r *rig) manyMemory(t *target) (float64, error) {
	before, threads, files := pss(t), threadsOf(t), filesOf(t)
	each, err := r.withTerminals(t, many, func() (float64, error) {
		r.many.peak = float64(pss(t))
		r.many.threads = float64(threadsOf(t) - threads)
		return (r.many.peak - float64(before)) / many, nil
	})
	r.many.files = float64(settled(func() int { return filesOf(t) - files }))
	return each, err
}

// manyAgain returns the extra memory of the second time, in % of the peak of the first
// time: it would show a leak.
func (r *rig) manyAgain(t *target) (float64, error) {
	return r.withTerminals(t, many, func() (float64, error) {
		return max(0, 100*(float64(pss(t))/r.many.peak-1)), nil
	})
}

// settled waits until a number is zero, but only for a while.
func settled(f func() int) (n int) {
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if n = f(); n <= 0 {
			return 0
		}
	}
	return n
}

func filesOf(t *target) (n int) {
	for _, pid := range server(t) {
		files, _ := os.ReadDir("/proc/" + pid + "/fd")
		n += len(files)
	}
	return n
}

// processes counts those of the user.
func (r *rig) processes() int { return len(r.pids()) }

func (r *rig) pids() (own []int) {
	if r.uid == "" {
		return nil
	}
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range all {
		data, _ := os.ReadFile(f)
		if strings.Contains(string(data), "\nUid:\t"+r.uid+"\t") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			own = append(own, pid)
		}
	}
	return own
}
