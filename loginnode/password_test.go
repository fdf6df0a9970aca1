package loginnode_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// passwords is a source of passwords that records what it was asked.
type passwords struct {
	mu    sync.Mutex
	asked []string
}

func (p *passwords) verify(_ context.Context, user, password string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, user+" "+password)
	if password != "secret of "+user {
		return errors.New("wrong")
	}
	return nil
}

// dialPassword logs in with answers to the prompts.
func (n *node) dialPassword(user string, answers ...string) (prompts []string, c *ssh.Client, err error) {
	c, err = ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
		User: user, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
		Auth: []ssh.AuthMethod{ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
			prompts = append(prompts, questions...)
			for _, echo := range echos {
				if echo {
					n.t.Error("a password is shown")
				}
			}
			return answers, nil
		})},
	})
	return prompts, c, err
}

func TestPasswords(t *testing.T) {
	var p passwords
	n := start(t, func(c *loginnode.Config) {
		c.Password, c.Prompts = p.verify, []string{"Password: ", "Code: "}
		c.PasswordRate = limit.Rate{PerSecond: 1000, Burst: 1000}
	})
	prompts, c, err := n.dialPassword("ann", "secret ", "of ann")
	n.must(err)
	if out := run(t, c, "echo in"); out != "in" || strings.Join(prompts, "") != "Password: Code: " {
		t.Errorf("%q, prompts %q", out, prompts)
	}
	if r := n.audit.find(t, "login"); len(r) != 1 || r[0].Method != "keyboard-interactive" {
		t.Errorf("%+v", r)
	}
	for _, answers := range [][]string{{"", ""}, {"wrong", ""}, {"secret of bob", ""}, {strings.Repeat("x", 2000), ""}, {"secret of ann\x00", ""}} {
		if _, _, err := n.dialPassword("ann", answers...); err == nil {
			t.Errorf("%.20q is accepted", answers)
		}
	}
	for _, name := range []string{"nobody-here", "root", "../ann", "ann\x00"} {
		if prompts, _, err := n.dialPassword(name, "secret of "+name, ""); err == nil || len(prompts) != 2 {
			t.Errorf("user %q: %v, prompts %q", name, err, prompts)
		}
	}
	for _, asked := range p.asked {
		if _, password, _ := strings.Cut(asked, " "); password == "" || strings.ContainsRune(asked, 0) || len(asked) > 1100 {
			t.Errorf("asked for %.50q", asked)
		}
	}
	// Keys go on to work.
	if out := n.output(n.ann(), "echo key"); out != "key" {
		t.Errorf("%q", out)
	}
	if r := n.audit.find(t, "login-failed"); len(r) < 9 {
		t.Errorf("%d failures are in the audit log", len(r))
	}
}

// TestPasswordRate: guesses for one user are refused beyond the rate, without asking anybody,
// and other users are not affected.
func TestPasswordRate(t *testing.T) {
	var p passwords
	n := start(t, func(c *loginnode.Config) {
		c.Password, c.PasswordRate = p.verify, limit.Rate{PerSecond: 1e-6, Burst: 3}
	})
	for range 5 {
		if _, _, err := n.dialPassword("nobody-here", "guess"); err == nil {
			t.Error("a guess is accepted")
		}
	}
	if len(p.asked) != 3 {
		t.Errorf("%d guesses were verified", len(p.asked))
	}
	_, _, err := n.dialPassword("ann", "secret of ann")
	n.must(err)
}

func TestPasswordsExcludeDeviceLogin(t *testing.T) {
	_, err := loginnode.New(loginnode.Config{
		Auth:     &auth.Config{Users: auth.Files{Passwd: "/etc/passwd"}},
		HostKeys: []ssh.Signer{newKey(t)}, Session: session.Config{Child: []string{"/bin/true"}},
		Password:    new(passwords).verify,
		DeviceLogin: func(context.Context, *auth.User, func(string) error) error { return nil },
	})
	if err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Error(err)
	}
}
