package loginnode

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
)

const (
	// passwordTimeout bounds the verification of a password.
	passwordTimeout = 30 * time.Second
	// maxPassword is the longest password that is verified, in bytes.
	maxPassword = 1024
)

// authPassword asks for a password, or the parts of one, and verifies it. Neither the dialog
// nor the time of a refusal reveals whether the user exists.
func (s *Server) authPassword(
	c *conn, m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge,
) (p *ssh.Permissions, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.reportEarlyPanic(c, r)
			p, err = nil, auth.ErrDenied
		}
	}()
	answers, err := ask("", "", s.cfg.Prompts, make([]bool, len(s.cfg.Prompts)))
	if err != nil {
		return nil, err
	}
	if !auth.ValidName(m.User()) || s.passwordRates.Wait(c.ctx, m.User()) != nil {
		return nil, auth.ErrDenied
	}
	start := time.Now()
	u, err := s.verifyPassword(c.ctx, m.User(), strings.Join(answers, ""))
	took := time.Since(start)
	if delay := s.refusals.add(took); err != nil {
		s.cfg.Log.Info("password refused", "user", audit.Truncate(m.User()), "error", err)
		time.Sleep(delay - took)
		return nil, auth.ErrDenied
	}
	return s.authorizeNode(c, auth.Proven(u, "keyboard-interactive"))
}

// verifyPassword returns the user whose password it is. Passwords of unknown users, and of those
// who may not log in, are verified too, so that it takes as long.
func (s *Server) verifyPassword(ctx context.Context, name, password string) (*auth.User, error) {
	ctx, cancel := context.WithTimeout(ctx, passwordTimeout)
	defer cancel()
	u, err := s.cfg.Auth.Find(ctx, name)
	if err == nil && u.UID == 0 {
		err = errors.New("root logs in with keys only")
	}
	// Some servers accept every user without a password.
	if password == "" || len(password) > maxPassword || strings.ContainsRune(password, 0) {
		return nil, errors.Join(err, errors.New("no password, or one that is too long"))
	}
	if wrong := s.cfg.Password(ctx, name, password); wrong != nil || err != nil {
		return nil, errors.Join(err, wrong)
	}
	return u, nil
}
