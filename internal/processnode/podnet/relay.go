package podnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Relay makes target (host:port on this machine) reachable for pods at a port of the
// gateway's address (0: a free one), and returns the address to dial. In a network without
// a bridge, pods can reach target itself, and Relay returns it.
func (n *Network) Relay(port uint16, target string) (string, error) {
	if !n.cfg.Root {
		return target, nil
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(n.gateway, port).String())
	if err != nil {
		return "", fmt.Errorf("relay to %s: %w", target, err)
	}
	n.mu.Lock()
	n.relays = append(n.relays, l)
	n.mu.Unlock()
	n.links.Go(func() { n.relay(l, target) })
	return l.Addr().String(), nil
}

// relay accepts connections until its listener is closed, then closes those that it
// relays.
func (n *Network) relay(l net.Listener, target string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for {
		in, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			continue
		}
		wait.Go(func() { join(ctx, in, target) })
	}
	cancel()
	wait.Wait()
}

// join copies in both directions between in and a new connection to target until both
// sides have ended or ctx ends, and closes both. After the end of ctx, join does not wait
// for peers.
func join(ctx context.Context, in net.Conn, target string) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = in.Close()
		_ = out.Close()
	})
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		closeWrite(out)
	}()
	_, _ = io.Copy(in, out)
	closeWrite(in)
	<-done
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
