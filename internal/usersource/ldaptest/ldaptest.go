// Package ldaptest runs OpenLDAP's slapd for tests: with a private configuration, data
// directory and port of loopback.
package ldaptest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
)

// Names in the directory.
const (
	Base   = "dc=example,dc=org"
	People = "ou=people," + Base
	Groups = "ou=groups," + Base
	// Reader may read everything, as the scheduler does, in pages of any number.
	Reader = "cn=reader," + Base
	// Small may read at most 500 entries.
	Small = "cn=small," + Base
	root  = "cn=admin," + Base
	// Password is that of all of them.
	Password = "secret"
)

// Server is a slapd.
type Server struct {
	URL, TLSURL  string
	CAFile       string
	PasswordFile string

	t       testing.TB
	dir     string
	process *exec.Cmd
}

// Sources returns the member "sources" of a configuration (--directory) with the server as the
// source ldap.
func (s *Server) Sources() string {
	return fmt.Sprintf(`
sources:
- name: ldap
  ldap:
    urls: [%s]
    bindDN: %s
    bindPasswordFile: %s
    users: {base: "%s"}
    groups: {base: "%s"}
`, s.URL, Reader, s.PasswordFile, People, Groups)
}

// program is where Debian installs slapd, which is not in an ordinary user's PATH.
const program = "/usr/sbin/slapd"

// configuration of slapd. %[1]s is the directory of everything, %[2]s the base.
const configuration = `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY sshPublicKey )
pidfile %[1]s/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile %[1]s/ca.pem
TLSCertificateFile %[1]s/ca.pem
TLSCertificateKeyFile %[1]s/key.pem
sizelimit 500
database mdb
maxsize 268435456
suffix "%[2]s"
rootdn "cn=admin,%[2]s"
rootpw secret
directory %[1]s/data
dbnosync
limits dn.exact="cn=reader,%[2]s" size.soft=500 size.hard=500 size.prtotal=unlimited
index objectClass,uid,memberUid,member eq
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
`

// Start starts a server, which is stopped at the end of the test. Without slapd, the test is
// skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Skip("slapd is not installed: apt-get install slapd")
	}
	s := &Server{t: t, dir: t.TempDir()}
	s.CAFile, s.PasswordFile = s.path("ca.pem"), s.path("password")
	s.write("slapd.conf", []byte(fmt.Sprintf(configuration, s.dir, Base)))
	s.write("password", []byte(Password+"\n"))
	s.certificate()
	if err := os.Mkdir(s.path("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.URL, s.TLSURL = "ldap://"+freePort(t), "ldaps://"+freePort(t)
	s.Run()
	t.Cleanup(s.Stop)
	s.Add("dn: "+Base, "objectClass: dcObject", "objectClass: organization", "dc: example", "o: Example")
	for _, dn := range []string{People, Groups} {
		s.Add("dn: "+dn, "objectClass: organizationalUnit")
	}
	for _, dn := range []string{Reader, Small} {
		s.Add("dn: "+dn, "objectClass: organizationalRole", "objectClass: simpleSecurityObject",
			"userPassword: "+Password)
	}
	return s
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) write(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// certificate writes the certificate of the server, which signs itself.
func (s *Server) certificate() {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "slapd"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Run starts the process, also again after Stop.
func (s *Server) Run() {
	s.t.Helper()
	var output bytes.Buffer
	p := exec.Command(program, "-d", "0", "-f", s.path("slapd.conf"), "-h", s.URL+"/ "+s.TLSURL+"/")
	p.Stdout, p.Stderr = &output, &output
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process = p
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := ldap.DialURL(s.URL)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.Stop()
			s.t.Fatalf("slapd does not answer: %v\n%s", err, &output)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stop kills the process, if it runs.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// connect returns a connection with all rights.
func (s *Server) connect() *ldap.Conn {
	s.t.Helper()
	c, err := ldap.DialURL(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Bind(root, Password); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Add adds an entry: "dn: ..." and then "attribute: value" lines.
func (s *Server) Add(lines ...string) {
	s.t.Helper()
	c := s.connect()
	defer func() { _ = c.Close() }()
	s.add(c, lines)
}

func (s *Server) add(c *ldap.Conn, lines []string) {
	s.t.Helper()
	r := ldap.NewAddRequest(strings.TrimPrefix(lines[0], "dn: "), nil)
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Attribute(name, []string{value})
	}
	if err := c.Add(merge(r)); err != nil {
		s.t.Fatalf("%s: %v", lines[0], err)
	}
}

// merge joins the values of attributes that are there several times.
func merge(r *ldap.AddRequest) *ldap.AddRequest {
	out := ldap.NewAddRequest(r.DN, nil)
	values := map[string][]string{}
	var order []string
	for _, a := range r.Attributes {
		if values[a.Type] == nil {
			order = append(order, a.Type)
		}
		values[a.Type] = append(values[a.Type], a.Vals...)
	}
	for _, name := range order {
		out.Attribute(name, values[name])
	}
	return out
}

// UserLines returns the lines of a user, with further attributes.
func UserLines(name string, uid, gid int, more ...string) []string {
	return append([]string{
		"dn: " + UserDN(name), "objectClass: inetOrgPerson", "objectClass: posixAccount", "objectClass: shadowAccount",
		"objectClass: ldapPublicKey", "uid: " + name, "cn: " + name, "sn: " + name,
		fmt.Sprint("uidNumber: ", uid), fmt.Sprint("gidNumber: ", gid), "homeDirectory: /home/" + name,
		"loginShell: /bin/bash",
	}, more...)
}

// UserDN returns the DN of a user.
func UserDN(name string) string { return "uid=" + ldap.EscapeDN(name) + "," + People }

// AddUser adds a user, with further lines.
func (s *Server) AddUser(name string, uid, gid int, more ...string) {
	s.t.Helper()
	s.Add(UserLines(name, uid, gid, more...)...)
}

// AddUsers adds n users, u0 and so on, with uids from the given one.
func (s *Server) AddUsers(n, uid, gid int) {
	s.t.Helper()
	c := s.connect()
	defer func() { _ = c.Close() }()
	for i := range n {
		s.add(c, UserLines(fmt.Sprint("u", i), uid+i, gid))
	}
}

// GroupDN returns the DN of a group.
func GroupDN(name string) string { return "cn=" + ldap.EscapeDN(name) + "," + Groups }

// AddGroup adds a group with names of members.
func (s *Server) AddGroup(name string, gid int, members ...string) {
	s.t.Helper()
	lines := []string{"dn: " + GroupDN(name), "objectClass: posixGroup", "cn: " + name, fmt.Sprint("gidNumber: ", gid)}
	for _, m := range members {
		lines = append(lines, "memberUid: "+m)
	}
	s.Add(lines...)
}

// Set replaces the values of an attribute; without values it deletes the attribute.
func (s *Server) Set(dn, attribute string, values ...string) {
	s.t.Helper()
	c := s.connect()
	defer func() { _ = c.Close() }()
	r := ldap.NewModifyRequest(dn, nil)
	r.Replace(attribute, values)
	if err := c.Modify(r); err != nil {
		s.t.Fatalf("%s: %v", dn, err)
	}
}

// Delete deletes an entry.
func (s *Server) Delete(dn string) {
	s.t.Helper()
	c := s.connect()
	defer func() { _ = c.Close() }()
	if err := c.Del(ldap.NewDelRequest(dn, nil)); err != nil {
		s.t.Fatalf("%s: %v", dn, err)
	}
}
