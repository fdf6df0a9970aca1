package forward

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
)

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"*:1", "10.0.0.0/8:22", "[::1]:22", "::1", "1.2.3.4", ":", "[::1]:x", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rules, err := ParseRule(s)
		if err == nil && len(rules) == 0 {
			t.Errorf("%q: no rule and no error", s)
		}
	})
}

func FuzzDestination(f *testing.F) {
	f.Add("169.254.169.254", uint32(80))
	f.Add("::ffff:169.254.1.1", uint32(80))
	f.Add("[fe80::1%lo]", uint32(80))
	p := Policy{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}
	bad := netip.MustParsePrefix("169.254.0.0/16")
	f.Fuzz(func(t *testing.T, host string, port uint32) {
		a, err := p.Destination(t.Context(), host, port)
		if err == nil && (bad.Contains(a.Addr()) || bad.Contains(a.Addr().Unmap()) || uint32(a.Port()) != port || a.Addr().IsUnspecified()) {
			t.Errorf("%q %d: %v", host, port, a)
		}
	})
}

func TestAllowListsAndPermitted(t *testing.T) {
	allow, err := ParseRule("192.0.2.0/24:443")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Allow: allow}
	for host, want := range map[string]bool{"192.0.2.1": true, "192.0.3.1": false} {
		if _, err := p.Destination(t.Context(), host, 443); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := p.Destination(t.Context(), "192.0.2.1", 80); err == nil {
		t.Error("another port is accepted")
	}
	for _, c := range []struct {
		rules []string
		host  string
		port  uint32
		want  bool
	}{
		{nil, "h", 1, true}, {[]string{}, "h", 1, false}, {[]string{"h:1"}, "H", 1, true}, {[]string{"h:1"}, "h", 2, false},
		{[]string{"h:*"}, "h", 2, true}, {[]string{"*:2"}, "x", 2, true}, {[]string{"8080"}, "any", 8080, true}, {[]string{"[::1]:2"}, "::1", 2, true},
	} {
		if got := permitted(c.rules, c.host, c.port); got != c.want {
			t.Errorf("%q %s:%d: %v", c.rules, c.host, c.port, got)
		}
	}
}

// channelRequest is a client's request for a channel, and the response to it.
type channelRequest struct {
	payload            []byte
	accepted, rejected bool
}

func (a *channelRequest) Accept() (ssh.Channel, <-chan *ssh.Request, error) {
	a.accepted = true
	return nil, nil, errors.New("not in this test")
}
func (a *channelRequest) Reject(ssh.RejectionReason, string) error { a.rejected = true; return nil }
func (a *channelRequest) ChannelType() string                      { return "" }
func (a *channelRequest) ExtraData() []byte                        { return a.payload }

// A key without permission to forward and listen gets neither, whatever it requests.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x09127.0.0.1\x00\x00\x00\x16\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x04/tmp\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x06/tmp/x"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		login := &auth.Login{User: &auth.User{UID: os.Geteuid()}, Options: auth.Options{PermitOpen: []string{}, PermitListen: []string{}}}
		w := &Forwarder{Policy: &Policy{}, Login: login, Context: t.Context(), Bytes: &Bytes{}, Panicked: func(v any) { t.Errorf("panic: %v", v) }}
		for _, serve := range []func(ssh.NewChannel){w.DirectTCP, w.DirectUnix} {
			a := &channelRequest{payload: payload}
			if serve(a); a.accepted || !a.rejected {
				t.Errorf("%q: accepted %v, rejected %v", payload, a.accepted, a.rejected)
			}
		}
		ok, _ := w.Listen(payload)
		if ok || w.ListenUnix(payload) || w.Cancel(payload) || w.CancelUnix(payload) || len(w.listeners) > 0 || w.flows != 0 {
			t.Errorf("%q: %v, %d listeners, %d flows", payload, ok, len(w.listeners), w.flows)
		}
		Host(&channelRequest{payload: payload})
	})
}
