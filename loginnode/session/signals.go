package session

import (
	"syscall"

	"golang.org/x/crypto/ssh"
)

// signals are the signals of RFC 4254 (6.10) by name.
var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP,
	"ILL": syscall.SIGILL, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
	"QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// signalName returns a signal's name in the protocol, or OpenSSH's name for signals
// without one.
func signalName(s syscall.Signal) string {
	for name, v := range signals {
		if v == s {
			return name
		}
	}
	return "SIG@openssh.com"
}

type exitStatus struct{ Status uint32 }

type exitSignal struct {
	Signal        string
	Core          bool
	Message, Lang string
}

// sendExit reports to the client how the process ended.
func sendExit(ch ssh.Channel, w syscall.WaitStatus) error {
	var err error
	if w.Signaled() {
		_, err = ch.SendRequest(
			"exit-signal",
			false,
			ssh.Marshal(exitSignal{Signal: signalName(w.Signal()), Core: w.CoreDump()}),
		)
	} else {
		_, err = ch.SendRequest("exit-status", false, ssh.Marshal(exitStatus{uint32(w.ExitStatus())}))
	}
	return err
}
