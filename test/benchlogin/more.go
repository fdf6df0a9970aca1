package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	background = 50  // logins a second
	flooders   = 200 // terminals that print 1 MB/s each
	echoes     = 100
	refusals   = 60
)

func percentile(v []float64, p int) float64 { slices.Sort(v); return v[(len(v)-1)*p/100] }

// underLoad is the 99th percentile of a login, ms, at a steady rate of them.
func (r *rig) underLoad(t *target) (float64, error) {
	var mu sync.Mutex
	var all []float64
	var failed error
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / background)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < perTurn; <-tick.C {
		wg.Add(1)
		go func() {
			defer wg.Done()
			at := time.Now()
			err := r.once(t, "")
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, float64(time.Since(at).Microseconds())/1000), errors.Join(failed, err)
		}()
	}
	wg.Wait()
	if failed != nil {
		return 0, failed
	}
	return percentile(all, 99), nil
}

// flood prints 1 MB/s without starting processes, which would affect the measurement.
const flood = `x=$(head -c 102400 /dev/zero | tr '\0' x); exec 3<> <(:); while ! read -r -t 0.1 -u 3 _; do printf %s "$x"; done`

// fairness is the 99th percentile, ms, of a key's way through a terminal and
// back while others' terminals are flooded.
func (r *rig) fairness(t *target) (float64, error) {
	var begin []io.Writer
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
		begin = append(begin, in)
		// Wait until all are there: logins beside a flood take a while.
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
	for _, in := range begin {
		if _, err := in.Write([]byte("\n")); err != nil {
			return 0, err
		}
	}
	time.Sleep(500 * time.Millisecond) // the modes are set, the flood is there
	var all []float64
	key := make([]byte, 1)
	began := time.Now()
	for range echoes {
		if time.Since(began) > 5*perTurn { // a busy machine must not make this last
			break
		}
		at := time.Now()
		if _, err := in.Write([]byte("k")); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(out, key); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(at).Microseconds())/1000)
		time.Sleep(10 * time.Millisecond)
	}
	return percentile(all, 99), nil
}

func (r *rig) terminal(t *target) (*ssh.Client, *ssh.Session, error) {
	c, err := r.dial(t)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.NewSession()
	if err == nil {
		err = s.RequestPty("xterm", 24, 80, nil)
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, s, nil
}

// upload is the rate of OpenSSH's sftp, MB/s.
func (r *rig) upload(t *target) (float64, error) {
	from := r.dir + "/bulk"
	if _, err := os.Stat(from); err != nil {
		if err := os.WriteFile(from, bytes.Repeat([]byte("0123456789abcdef"), bulkSize/16), 0o644); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := r.tool(t, "sftp", "-b", "-", "put "+from+" bulk\n")
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// fetch is the rate of OpenSSH's sftp, MB/s, of what upload has left there.
func (r *rig) fetch(t *target) (float64, error) {
	began := time.Now()
	err := r.tool(t, "sftp", "-b", "-", "get bulk "+r.dir+"/fetched\n")
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// stream is the rate, MB/s, at which OpenSSH's client with its own choice of a
// cipher sends to a command.
func (r *rig) stream(t *target) (float64, error) {
	from, err := os.Open("/dev/zero")
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	_, port, _ := net.SplitHostPort(t.addr)
	cmd := exec.Command("ssh", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
		"UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-i", r.dir+"/key", "-p", port, r.user+"@127.0.0.1", "exec cat > /dev/null")
	cmd.Stdin = io.LimitReader(from, bulkSize)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("ssh: %w %s", err, out)
	}
	return bulkSize / 1e6 / time.Since(began).Seconds(), nil
}

// smallFiles returns how many files per second rsync copies.
func (r *rig) smallFiles(t *target) (float64, error) {
	const files = 2000
	from := r.dir + "/small"
	if _, err := os.Stat(from); err != nil {
		if err := os.Mkdir(from, 0o755); err != nil {
			return 0, err
		}
		for i := range files {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", from, i), []byte("some text"), 0o644); err != nil {
				return 0, err
			}
		}
	}
	if err := r.once(t, "rm -rf small"); err != nil {
		return 0, err
	}
	_, port, _ := net.SplitHostPort(t.addr)
	began := time.Now()
	out, err := exec.Command("rsync", "-a", "-e",
		"ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i "+
			r.dir+"/key -p "+port, from, r.user+"@127.0.0.1:").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("rsync: %w %s", err, out)
	}
	return files / time.Since(began).Seconds(), nil
}

// tool runs a program of OpenSSH's with an input.
func (r *rig) tool(t *target, program, option, value, input string) error {
	_, port, _ := net.SplitHostPort(t.addr)
	cmd := exec.Command(program, "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
		"UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-i", r.dir+"/key", "-P", port, option, value, r.user+"@127.0.0.1")
	cmd.Stdin = bytes.NewReader([]byte(input))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w %s", program, err, out)
	}
	return nil
}

// enumeration returns how much longer a refusal takes for an existing user than for one
// that does not exist, in percent (S19: at most 20 either way).
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
			user = "nobody-knows"
		}
		at := time.Now()
		c, err := ssh.Dial("tcp", t.addr, &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(stranger)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
			Timeout: 30 * time.Second,
		})
		if err == nil {
			_ = c.Close()
			return 0, errors.New("a stranger was let in")
		}
		times[known] = append(times[known], float64(time.Since(at).Microseconds()))
	}
	return 100 * (median(times[true])/median(times[false]) - 1), nil
}
