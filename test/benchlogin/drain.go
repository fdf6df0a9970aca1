package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// another starts one more login node, with the usual limits, that may be stopped.
func (r *rig) another() (*target, error) {
	if r.ending != nil {
		return r.ending, nil
	}
	t, err := r.loginnode("another", "perSourcePenalties: {disabled: true}\ndrainMessage: bench drains\n")
	r.ending = t
	return t, err
}

// perConnection returns how many concurrent sessions one connection may have before one
// is refused in the way that OpenSSH's client understands.
func (r *rig) perConnection(*target) (float64, error) {
	t, err := r.another()
	if err != nil {
		return 0, err
	}
	c, err := r.dial(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	for n := 0; ; n++ {
		s, err := c.NewSession()
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) && refused.Reason == ssh.Prohibited {
			return float64(n), nil
		}
		if err != nil {
			return 0, err
		}
		if _, err := s.StdinPipe(); err != nil {
			return 0, err
		}
		if err := s.Start("exec cat"); err != nil {
			return 0, err
		}
	}
}

// drain measures how long, in ms, a server that is stopped still reports that it is
// ready. It fails unless new logins are refused then, the terminals have the message,
// and their sessions continue.
func (r *rig) drain(*target) (float64, error) {
	t, err := r.another()
	if err != nil {
		return 0, err
	}
	c, s, err := r.terminal(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	in, err1 := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	said, err3 := s.StderrPipe()
	if err := errors.Join(err1, err2, err3, s.Start("stty raw -echo; echo ready; exec cat")); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		return 0, err
	}
	at := time.Now()
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	for ready(t) {
		if time.Since(at) > 30*time.Second {
			return 0, errors.New("it is ready for ever")
		}
		time.Sleep(time.Millisecond)
	}
	took := float64(time.Since(at).Microseconds()) / 1000
	if late, err := r.dial(t); err == nil {
		_ = late.Close()
		return 0, errors.New("a login came in")
	}
	message := bufio.NewReader(said)
	for text := ""; !strings.Contains(text, "bench drains"); {
		if text, err = message.ReadString('\n'); err != nil {
			return 0, fmt.Errorf("no message: %w", err)
		}
	}
	if _, err := in.Write([]byte("still\n")); err != nil {
		return 0, err
	}
	if text, err := lines.ReadString('\n'); err != nil || text != "still\n" {
		return 0, fmt.Errorf("the session has ended: %q, %w", text, err)
	}
	return took, nil
}

func ready(t *target) bool {
	resp, err := http.Get(strings.TrimSuffix(t.metrics, "metrics") + "readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
