package session

import (
	"context"
	"io"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Program is a program that the server, not the client, starts where a connection's
// sessions run, with their rights and limits.
type Program struct {
	// In and Out are its standard input and output.
	In  io.Writer
	Out io.Reader

	process *process
}

// Run starts a command line of sh(1). The caller calls Close.
func Run(cfg *Config, conn *Conn, command string) (*Program, error) {
	// The options of the key restrict the client, not the server.
	login, user := *conn.Login, *conn.Login.User
	login.Options, login.User = auth.Options{}, &user
	user.Shell = "/bin/sh" // which reads no file of the user at start
	own := *conn
	own.Login = &login
	s := &Session{Conn: &own, cfg: cfg, Kind: "exec", Command: command}
	s.ctx, s.cancel = context.WithCancel(conn.Context)
	p, err := s.launch()
	if err != nil {
		s.release()
		return nil, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, p.stderr)
	}()
	go func() {
		_, _ = p.wait()
		s.release() // s.process is not set, so this leaves the program's pipes open
	}()
	return &Program{In: p.stdin, Out: p.stdout, process: p}, nil
}

// Close ends the program if it is running.
func (p *Program) Close() { p.process.hangup() }
