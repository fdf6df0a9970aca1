package auth

import (
	"crypto/rand"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// For any certificate: it is accepted only if a trusted CA has signed it, it names a
// principal, and every critical option is enforced.
func FuzzCertificate(f *testing.F) {
	ca, key := newKey(f), newKey(f)
	a := Attempt{User: "ann", Source: netip.MustParseAddr("192.0.2.1"), Now: time.Now()}
	f.Add("ann", "force-command", "id", "permit-pty", []byte{}, true)
	f.Add("ann", "source-address", "192.0.2.0/24", "", []byte{}, true)
	f.Add("ann", "source-address", "!192.0.2.1,*", "", []byte{}, true)
	f.Add("", "verify-required", "", "", []byte{}, true)
	f.Add("ann", "", "", "no-touch-required", []byte("x"), false)
	f.Fuzz(func(t *testing.T, principal, option, value, extension string, junk []byte, signed bool) {
		cert := &ssh.Certificate{
			Key: key.PublicKey(), CertType: ssh.UserCert, KeyId: value, ValidPrincipals: []string{principal}, ValidBefore: ssh.CertTimeInfinity,
			Permissions: ssh.Permissions{CriticalOptions: map[string]string{}, Extensions: map[string]string{extension: ""}},
		}
		if option != "" {
			cert.CriticalOptions[option] = value
		}
		if err := cert.SignCert(rand.Reader, ca); err != nil {
			t.Skip()
		}
		if !signed {
			cert.Signature.Blob = append(junk, cert.Signature.Blob...)
		}
		// As received over the network.
		parsed, err := ssh.ParsePublicKey(cert.Marshal())
		if err != nil {
			return
		}
		got := parsed.(*ssh.Certificate)
		o, err := checkCert(got, []string{"ann"})
		if err == nil {
			err = sourceAddress(got, a)
		}
		if err != nil {
			return
		}
		known := option == "" || option == "force-command" || option == "source-address"
		if principal != "ann" || !known || !signed && len(junk) > 0 {
			t.Errorf("principal %q, option %q, signed %v with %q: the login succeeded", principal, option, signed, junk)
		}
		if o.HasCommand != (option == "force-command") || o.HasCommand && o.Command != value {
			t.Errorf("option %q=%q: %+v", option, value, o)
		}
		if option == "source-address" && !strings.Contains(value, "192.0.2.") && !strings.Contains(value, "/") {
			t.Errorf("source-address %q accepts 192.0.2.1", value)
		}
	})
}

// A look-up in files of users finds only the requested user, and only if no other user
// has the uid; a group file adds no group whose line does not name the user.
func FuzzFiles(f *testing.F) {
	f.Add("ann:x:1:1::/:/bin/sh\nbob:x:1:1::/:/bin/sh\n", "g:x:5:ann,bob\n")
	f.Add("ann:x:1:1::/:/bin/sh", "g:x:4294967295:ann\n:::ann\n")
	f.Add(strings.Repeat("x", 5000)+"\nann:x:7:1::/:/bin/sh\n\x00", strings.Repeat("a,", 3000))
	f.Fuzz(func(t *testing.T, passwd, group string) {
		u, err := findPasswd(strings.NewReader(passwd), "ann")
		if err != nil {
			return
		}
		if u.Name != "ann" || !strings.Contains("\n"+passwd, "\nann:") {
			t.Errorf("%q: %+v", passwd, u)
		}
		for line := range strings.Lines(passwd) {
			o, err := ParsePasswd(strings.TrimSuffix(line, "\n"))
			if err == nil && o.UID == u.UID && o.UID != 0 && o.Name != "ann" {
				t.Errorf("%q: %s has the same uid", passwd, o.Name)
			}
		}
		groups, err := groupsOf(strings.NewReader(group), u)
		if err != nil || len(groups) == 0 || groups[0] != u.GID {
			t.Errorf("%q: %v, %v", group, groups, err)
		}
		if len(groups) > 1 && !strings.Contains(group, "ann") {
			t.Errorf("%q: %v", group, groups)
		}
	})
}

// A principal of a list is a word, and a line with options is none.
func FuzzPrincipals(f *testing.F) {
	f.Add([]byte("ann # comment\nfrom=\"*\" bob\n\n\tcarl\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range names(data) {
			if p == "" || strings.ContainsAny(p, " \t\r\n#") {
				t.Errorf("%q: %q", data, p)
			}
		}
	})
}

// A pattern that begins with ! never accepts an address.
func FuzzMatchFrom(f *testing.F) {
	f.Add("10.0.0.0/8,!10.1.0.0/16", "10.1.2.3")
	f.Add("*", "::ffff:192.0.2.1")
	f.Add("[1-9]*", "192.0.2.1")
	f.Fuzz(func(t *testing.T, patterns, addr string) {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return
		}
		if matchFrom(patterns, a) && matchFrom(patterns+",!"+a.Unmap().WithZone("").String(), a) {
			t.Errorf("%q and not %s: the login succeeded", patterns, a)
		}
		if strings.Trim(patterns, "!, ") == "" && matchFrom(patterns, a) {
			t.Errorf("%q accepts %s", patterns, a)
		}
	})
}
