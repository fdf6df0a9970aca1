package auth

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

// caSignatures are the algorithms with which an authority may sign.
var caSignatures = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
	ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
}

// soundCert checks a user certificate and its signature. The caller checks the
// authority and the principals.
func soundCert(cert *ssh.Certificate) error {
	if cert.CertType != ssh.UserCert {
		return errors.New("not a user certificate")
	}
	if _, nested := cert.SignatureKey.(*ssh.Certificate); nested {
		return errors.New("signed by a certificate")
	}
	if _, nested := cert.Key.(*ssh.Certificate); nested {
		return errors.New("a certificate of a certificate")
	}
	if cert.Signature == nil || !slices.Contains(caSignatures, cert.Signature.Format) {
		return errors.New("signed with an algorithm that is not accepted")
	}
	// ssh.CertChecker accepts a certificate without principals for every user.
	if len(cert.ValidPrincipals) == 0 {
		return errors.New("the certificate lacks a list of principals")
	}
	checker := ssh.CertChecker{SupportedCriticalOptions: []string{"force-command", "source-address"}}
	return checker.CheckCert(cert.ValidPrincipals[0], cert)
}

// checkCert checks a user certificate except for its authority. principals are the
// user's principals.
func checkCert(cert *ssh.Certificate, principals []string) (Options, error) {
	if err := soundCert(cert); err != nil {
		return Options{}, err
	}
	if !slices.ContainsFunc(principals, func(p string) bool { return slices.Contains(cert.ValidPrincipals, p) }) {
		return Options{}, fmt.Errorf("the user has none of its principals %q", cert.ValidPrincipals)
	}
	return certOptions(cert), nil
}

// certOptions returns what a certificate allows: only what it names.
func certOptions(cert *ssh.Certificate) Options {
	lacks := func(name string) bool { _, ok := cert.Extensions[name]; return !ok }
	o := Options{
		NoPTY: lacks("permit-pty"), NoPortForwarding: lacks("permit-port-forwarding"),
		NoAgent: lacks("permit-agent-forwarding"), NoUserRC: lacks("permit-user-rc"),
		NoTouch: !lacks("no-touch-required"),
	}
	o.Command, o.HasCommand = cert.CriticalOptions["force-command"]
	return o
}

// merge merges a certificate's options with those of the line that trusts its authority.
// What either forbids is forbidden.
func (o Options) merge(line Options) (Options, error) {
	if o.HasCommand && line.HasCommand && o.Command != line.Command {
		return o, errors.New("the certificate and authorized_keys force different commands")
	}
	out := line
	out.NoPTY, out.NoPortForwarding = o.NoPTY || line.NoPTY, o.NoPortForwarding || line.NoPortForwarding
	out.NoAgent, out.NoUserRC = o.NoAgent || line.NoAgent, o.NoUserRC || line.NoUserRC
	out.NoTouch = o.NoTouch || line.NoTouch
	if o.HasCommand {
		out.Command, out.HasCommand = o.Command, true
	}
	return out, nil
}
