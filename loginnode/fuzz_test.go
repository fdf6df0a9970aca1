package loginnode

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/limit"
)

// fuzzed returns a server that has received no bytes, with a connection of a user who has
// logged in.
func fuzzed(t testing.TB) (*Server, *conn) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	u := &auth.User{Name: "ann", UID: os.Geteuid()}
	s := &Server{
		cfg:    Config{HostKeys: []ssh.Signer{key}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Gateway: &Gateway{User: u}},
		quotas: limit.NewQuotas(1, 1), activeSessions: map[notifier]time.Time{}, conns: map[*conn]bool{}, gateway: newGatewayState(time.Now()),
	}
	s.credentials = &credentials{server: s, users: map[int]*userCredential{}}
	login := &auth.Login{User: u}
	return s, &conn{server: s, login: login, ssh: &ssh.ServerConn{Conn: identified{}}}
}

// identified is a connection that has an identity and nothing else.
type identified struct{ ssh.Conn }

func (identified) SessionID() []byte { return []byte("session") }

// For any proof that a client requests: the signed data has this connection and a host
// key, and nothing else.
func FuzzProve(f *testing.F) {
	s, c := fuzzed(f)
	own := s.cfg.HostKeys[0].PublicKey()
	f.Add(uint8(1), []byte{})
	f.Add(uint8(2), []byte("\x00\x00\x00\x04junk"))
	f.Add(uint8(0), []byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, times uint8, junk []byte) {
		payload := bytes.Repeat(ssh.Marshal(struct{ Key []byte }{own.Marshal()}), int(times%4))
		ok, answer := s.proveHostKeys(c, &ssh.Request{Type: requestProve, Payload: append(payload, junk...)})
		if ok != (times%4 == 1 && len(junk) == 0) {
			t.Fatalf("%d keys and %q: %v", times%4, junk, ok)
		}
		if !ok {
			if len(answer) > 0 {
				t.Errorf("refused with %d bytes", len(answer))
			}
			return
		}
		var m struct{ Signature []byte }
		var sig ssh.Signature
		if ssh.Unmarshal(answer, &m) != nil || ssh.Unmarshal(m.Signature, &sig) != nil {
			t.Fatalf("the answer %q", answer)
		}
		what := ssh.Marshal(struct {
			Name         string
			Session, Key []byte
		}{requestProve, c.ssh.SessionID(), own.Marshal()})
		if err := own.Verify(what, &sig); err != nil {
			t.Error(err)
		}
	})
}

// The requests of a gateway to a server in a pod. Malformed ones have no effect.
func FuzzFromGateway(f *testing.F) {
	f.Add(requestAdmit, []byte(`{"Conn":"1","From":"192.0.2.1:22","Options":{"NoPTY":true}}`))
	f.Add(requestAdmit, []byte(`{"Inside":{"Command":["srun","%E"]}}`))
	f.Add(requestAdmit, []byte(`null`))
	f.Add(requestCredential, []byte(`{"Files":{"../../x":"y"},"Env":["A=%d"]}`))
	f.Add(requestCredential, []byte(`null`))
	f.Add(requestRetire, []byte(`{"Idle":-1}`))
	f.Add(requestRetire, []byte(`{"Idle":1}`))
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		s, c := fuzzed(t)
		for range 2 {
			ok, answer := s.gatewayRequest(c, &ssh.Request{Type: kind, Payload: payload})
			if len(answer) > 0 {
				t.Errorf("%s: an answer", kind)
			}
			if !ok && kind == requestCredential && s.gateway.cred != nil {
				t.Errorf("%q: refused and kept", payload)
			}
		}
		// The identity of an accepted connection can be logged.
		_, _ = c.source(), c.inside()
		select {
		case <-s.gateway.first:
			if cred, err := s.pushedCredential(t.Context(), s.cfg.Gateway.User); err != nil || cred == nil {
				t.Errorf("%q: %v", payload, err)
			}
		default:
		}
	})
}

// Messages between a client and a pod are parsed for the log and the metrics, in which
// clients cannot choose names.
func FuzzRelayed(f *testing.F) {
	f.Add("exec", []byte("\x00\x00\x00\x02ls"), "exit-status", []byte("\x00\x00\x00\x07"))
	f.Add("subsystem", []byte("\x00\x00\x00\x04sftp"), "exit-signal", []byte("\x00\x00\x00\x04TERM\x00"))
	f.Add("subsystem", []byte("\x00\x00\x00\x03a\"b"), "exit-status", []byte("\xff"))
	f.Add("pty-req", []byte("\xff\xff\xff\xff"), "exit-signal", []byte("\xff\xff\xff\xff"))
	kinds := []string{"", "shell", "exec", "sftp", "subsystem"}
	f.Fuzz(func(t *testing.T, kind string, payload []byte, answer string, status []byte) {
		s, c := fuzzed(t)
		r := &relayedSession{conn: c}
		r.clientRequest(&ssh.Request{Type: kind, Payload: payload})
		r.podRequest(&ssh.Request{Type: answer, Payload: status})
		r.ended()
		if !slices.Contains(kinds, r.kind) {
			t.Errorf("a session of the kind %q", r.kind)
		}
		if len(s.activeSessions) > 0 {
			t.Error("a session that has ended is still active")
		}
	})
}

// By way of a node a client can connect only to the node itself, in the job.
func FuzzReach(f *testing.F) {
	at := netip.MustParseAddr("192.0.2.7")
	f.Add("localhost", uint32(80), true)
	f.Add("LOCALHOST", uint32(0), true)
	f.Add("n1", uint32(22), false)
	f.Add("n1.", uint32(80), false)
	f.Add("169.254.169.254", uint32(1<<31), true)
	f.Add("127.0.0.2", uint32(80), true)
	f.Fuzz(func(t *testing.T, host string, port uint32, inside bool) {
		s, c := fuzzed(t)
		if !inside && port == nodePort {
			return // would serve a connection
		}
		s.cfg.Nodes = &Nodes{
			Has:   func(name string) bool { return name == "n1" },
			Place: func(context.Context, *auth.User, string) (*Place, error) { return &Place{Address: at}, nil },
		}
		itself := host == "n1"
		if inside {
			c.outer, c.node, c.place = c, "n1", &Place{Address: at}
			itself = slices.Contains([]string{"localhost", "127.0.0.1", "::1", "n1"}, strings.ToLower(host))
		}
		stream, other, err := c.reach(t.Context(), host, port)
		switch {
		case stream != nil:
			t.Error("there is a stream")
		case itself && (other != at.String() || err != nil):
			t.Errorf("%q: %q, %v", host, other, err)
		case !itself && other != "":
			t.Errorf("%q: %q", host, other)
		case !itself && inside:
			if !errors.As(err, new(forward.Refusal)) {
				t.Errorf("%q from a node: %v", host, err)
			}
		}
	})
}
