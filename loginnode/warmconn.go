package loginnode

import (
	"context"
	"time"

	"golang.org/x/crypto/ssh"
)

// warmConn is a connection to a pod on which no client has been admitted. The manager
// keeps one for each pod, so that the next login does not wait for a handshake.
type warmConn struct {
	conn  ssh.Conn
	chans <-chan ssh.NewChannel
}

// warmTimeout is how long a warm connection may take to answer before a new one is
// opened: a firewall may have dropped it.
const warmTimeout = 2 * time.Second

// admitted returns a connection to a pod on which the client is admitted: the warm
// one, or a new one if that is lost.
func (k *podManager) admitted(
	ctx context.Context,
	e *managedPod,
	a *Admission,
) (ssh.Conn, <-chan ssh.NewChannel, error) {
	defer k.openWarm(e)
	if l := e.takeWarm(); l != nil {
		soon, cancel := context.WithTimeout(ctx, warmTimeout)
		defer cancel()
		end := context.AfterFunc(soon, func() { _ = l.conn.Close() })
		defer end()
		if request(l.conn, requestAdmit, a) == nil {
			return l.conn, l.chans, nil
		}
		_ = l.conn.Close()
	}
	conn, chans, err := k.dial(ctx, e.pod)
	if err != nil {
		return nil, nil, err
	}
	if err := request(conn, requestAdmit, a); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, chans, nil
}

func (e *managedPod) takeWarm() *warmConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.warm
	e.warm = nil
	return l
}

// openWarm opens a warm connection in the background.
func (k *podManager) openWarm(e *managedPod) {
	go func() {
		defer k.server.recoverPanic()
		ctx, cancel := context.WithTimeout(k.ctx, dialTimeout)
		defer cancel()
		conn, chans, err := k.dial(ctx, e.pod)
		if err != nil {
			return // the next login opens one
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.ended || e.warm != nil {
			_ = conn.Close()
			return
		}
		e.warm = &warmConn{conn, chans}
	}()
}

// closeWarm closes the warm connection of a pod that is no longer used.
func (e *managedPod) closeWarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.warm != nil {
		_ = e.warm.conn.Close()
		e.warm = nil
	}
}
