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

// another returns another login node, with the default limits, that may be stopped.
func (r *rig) another() (*target, error) {
	if r.drained != nil {
		return r.drained, nil
	}
	t, err := r.loginnode("another", "perSourcePenalties: {disabled: true}\ndrainMessage: bench drains\n")
	r.drained = t
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
		if err := startCat(s); err != nil {
			return 0, err
		}
	}
}

// drain returns how long a stopped server still reports that it is ready, in ms. It fails
// unless new logins are refused afterwards, and terminals receive the message and continue.
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
	errs, err3 := s.StderrPipe()
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
			return 0, errors.New("the stopped server still reports that it is ready")
		}
		time.Sleep(time.Millisecond)
	}
	took := millisecondsSince(at)
	if late, err := r.dial(t); err == nil {
		_ = late.Close()
		return 0, errors.New("the stopped server accepts a login")
	}
	message := bufio.NewReader(errs)
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

// ready reports whether the server reports that it is ready.
func ready(t *target) bool {
	resp, err := http.Get(strings.TrimSuffix(t.metrics, "metrics") + "readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
