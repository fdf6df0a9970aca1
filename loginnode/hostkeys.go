package loginnode

import (
	"bytes"
	"crypto/rand"

	"golang.org/x/crypto/ssh"
)

// Requests by which a client learns a server's other host keys, so that they can
// change without a prompt to the user (OpenSSH's PROTOCOL, 2.5).
const (
	requestHostKeys = "hostkeys-00@openssh.com"
	requestProve    = "hostkeys-prove-00@openssh.com"
)

// allHostKeys returns the present and the future host keys.
func (s *Server) allHostKeys() []ssh.Signer {
	return append(append([]ssh.Signer{}, s.cfg.HostKeys...), s.cfg.NextHostKeys...)
}

// announceHostKeys sends all host keys to a client that has logged in.
func (s *Server) announceHostKeys(to ssh.Conn) {
	var payload []byte
	for _, k := range s.allHostKeys() {
		payload = append(payload, ssh.Marshal(struct{ Key []byte }{k.PublicKey().Marshal()})...)
	}
	_, _, _ = to.SendRequest(requestHostKeys, false, payload)
}

// proveHostKeys proves to a client that the server has the requested host keys. It
// refuses the request if one of them is not the server's.
func (s *Server) proveHostKeys(c *conn, r *ssh.Request) (bool, []byte) {
	var answer []byte
	rest, keys := r.Payload, s.allHostKeys()
	for n := 0; len(rest) > 0; n++ {
		var one struct {
			Key  []byte
			Rest []byte `ssh:"rest"`
		}
		if n >= len(keys) || ssh.Unmarshal(rest, &one) != nil {
			return false, nil
		}
		signature, ok := s.signature(c, one.Key)
		if !ok {
			return false, nil
		}
		answer = append(answer, ssh.Marshal(struct{ Signature []byte }{signature})...)
		rest = one.Rest
	}
	return len(answer) > 0, answer
}

// signature returns the signature of a host key for one connection.
func (s *Server) signature(c *conn, key []byte) ([]byte, bool) {
	what := ssh.Marshal(struct {
		Name    string
		Session []byte
		Key     []byte
	}{requestProve, c.ssh.SessionID(), key})
	for _, k := range s.allHostKeys() {
		if !bytes.Equal(k.PublicKey().Marshal(), key) {
			continue
		}
		var sig *ssh.Signature
		var err error
		if a, ok := k.(ssh.AlgorithmSigner); ok && k.PublicKey().Type() == ssh.KeyAlgoRSA {
			sig, err = a.SignWithAlgorithm(rand.Reader, what, ssh.KeyAlgoRSASHA512)
		} else {
			sig, err = k.Sign(rand.Reader, what)
		}
		return ssh.Marshal(sig), err == nil
	}
	return nil, false
}
