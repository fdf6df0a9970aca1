package loginnode

import (
	"context"
	"time"

	"golang.org/x/crypto/ssh"
)

// spareLink is a connection to a pod that nobody has been admitted on yet. One
// is kept for each pod, so that the next login does not wait for a handshake.
type warmConn struct {
	conn  ssh.Conn
	chans <-chan ssh.NewChannel
}

// spareAnswers is how long a spare connection has to answer before another is
// made: what lies between may have forgotten it.
const warmTimeout = 2 * time.Second

// admitted is a connection to a pod on which a client is admitted: the spare
// one, unless that is lost, else a new one.
func (k *podManager) admitted(ctx context.Context, e *managedPod, a *Admission) (ssh.Conn, <-chan ssh.NewChannel, error) {
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

// refill makes a spare connection in the background.
func (k *podManager) openWarm(e *managedPod) {
	go func() {
		defer k.server.recoverPanic()
		ctx, cancel := context.WithTimeout(k.ctx, dialTimeout)
		defer cancel()
		conn, chans, err := k.dial(ctx, e.pod)
		if err != nil {
			return // the next login tries itself
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

// endSpares is called when the pod is of no use any more.
func (e *managedPod) closeWarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.warm != nil {
		_ = e.warm.conn.Close()
		e.warm = nil
	}
}
