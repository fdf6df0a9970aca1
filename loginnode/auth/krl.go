package auth

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the format has a section of SHA-1 fingerprints; a match only revokes
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// Revoked is a list of revoked keys and certificates.
type Revoked struct {
	keys   map[string]bool // blobs of public keys
	sha1   map[string]bool
	sha256 map[string]bool
	certs  []certSection
}

// certSection revokes certificates of one CA; an empty ca means any.
type certSection struct {
	ca      []byte
	ranges  []serialRange
	bitmaps []serialBitmap
	ids     map[string]bool
}

type serialRange struct{ lo, hi uint64 }

type serialBitmap struct {
	offset uint64
	bits   *big.Int
}

// krlMagic is the start of a key revocation list in OpenSSH's binary format
// (PROTOCOL.krl).
const krlMagic = "SSHKRL\n\x00"

// Sections of a KRL, and of its section on certificates.
const (
	krlCertificates = 1
	krlExplicitKeys = 2
	krlSHA1         = 3
	krlSignature    = 4
	krlSHA256       = 5
	krlExtension    = 255

	certSerialList   = 0x20
	certSerialRange  = 0x21
	certSerialBitmap = 0x22
	certKeyID        = 0x23
	certExtension    = 0x39
)

// ParseRevoked parses a revocation list: a KRL, or lines of public keys. It ignores the
// signature of a KRL, as ssh does; the file's modes protect it.
func ParseRevoked(data []byte) (*Revoked, error) {
	r := &Revoked{keys: map[string]bool{}, sha1: map[string]bool{}, sha256: map[string]bool{}}
	if !bytes.HasPrefix(data, []byte(krlMagic)) {
		return r, r.parseText(data)
	}
	in := reader{data: data[len(krlMagic):]}
	if version := in.uint32(); version != 1 {
		return nil, fmt.Errorf("revocation list: format version %d is not supported", version)
	}
	in.skip(8 + 8 + 8) // its own version, date, flags
	in.string()        // reserved
	in.string()        // comment
	for in.more() {
		kind := in.byte()
		if kind == krlSignature {
			break // only signatures follow
		}
		section := reader{data: in.string()}
		if in.err == nil {
			in.err = r.section(kind, &section)
		}
	}
	if in.err != nil {
		return nil, fmt.Errorf("revocation list: %w", in.err)
	}
	return r, nil
}

func (r *Revoked) parseText(data []byte) error {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			// With half of the list, revoked keys would be accepted.
			return fmt.Errorf("revocation list: %w", err)
		}
		r.keys[string(key.Marshal())] = true
	}
	return nil
}

func (r *Revoked) section(kind byte, in *reader) error {
	switch kind {
	case krlCertificates:
		return r.certificates(in)
	case krlExplicitKeys, krlSHA1, krlSHA256:
		into := map[byte]map[string]bool{krlExplicitKeys: r.keys, krlSHA1: r.sha1, krlSHA256: r.sha256}[kind]
		for in.more() {
			into[string(in.string())] = true
		}
		return in.err
	case krlExtension:
		return extension(in)
	}
	return fmt.Errorf("unknown section %d", kind)
}

// extension skips an extension unless it is critical.
func extension(in *reader) error {
	name := in.string()
	critical := in.byte() != 0
	in.string()
	if in.err == nil && critical {
		return fmt.Errorf("unknown critical extension %q", name)
	}
	return in.err
}

func (r *Revoked) certificates(in *reader) error {
	s := certSection{ca: in.string(), ids: map[string]bool{}}
	in.string() // reserved
	for in.more() {
		kind := in.byte()
		sub := reader{data: in.string()}
		if in.err != nil {
			break
		}
		if err := s.add(kind, &sub); err != nil {
			return err
		}
	}
	if in.err == nil {
		r.certs = append(r.certs, s)
	}
	return in.err
}

func (s *certSection) add(kind byte, in *reader) error {
	switch kind {
	case certSerialList:
		for in.more() {
			n := in.uint64()
			s.ranges = append(s.ranges, serialRange{n, n})
		}
	case certSerialRange:
		s.ranges = append(s.ranges, serialRange{in.uint64(), in.uint64()})
	case certSerialBitmap:
		s.bitmaps = append(s.bitmaps, serialBitmap{in.uint64(), new(big.Int).SetBytes(in.string())})
	case certKeyID:
		for in.more() {
			s.ids[string(in.string())] = true
		}
	case certExtension:
		return extension(in)
	default:
		return fmt.Errorf("unknown certificate section %#x", kind)
	}
	return in.err
}

// Contains reports whether a key, or a certificate, its key or its authority, is
// revoked. A nil list revokes nothing.
func (r *Revoked) Contains(key ssh.PublicKey) bool {
	if r == nil {
		return false
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return r.containsKey(key)
	}
	if r.containsKey(cert) || r.containsKey(cert.Key) || r.containsKey(cert.SignatureKey) {
		return true
	}
	for _, s := range r.certs {
		if s.contains(cert) {
			return true
		}
	}
	return false
}

func (r *Revoked) containsKey(key ssh.PublicKey) bool {
	blob := key.Marshal()
	s1, s256 := sha1.Sum(blob), sha256.Sum256(blob)
	return r.keys[string(blob)] || r.sha1[string(s1[:])] || r.sha256[string(s256[:])]
}

func (s *certSection) contains(cert *ssh.Certificate) bool {
	if len(s.ca) > 0 && !bytes.Equal(s.ca, cert.SignatureKey.Marshal()) {
		return false
	}
	if s.ids[cert.KeyId] {
		return true
	}
	if cert.Serial == 0 { // "no serial": PROTOCOL.krl says it cannot be revoked by it
		return false
	}
	for _, r := range s.ranges {
		if r.lo <= cert.Serial && cert.Serial <= r.hi {
			return true
		}
	}
	for _, b := range s.bitmaps {
		if n := cert.Serial - b.offset; cert.Serial >= b.offset && n < uint64(b.bits.BitLen()) &&
			b.bits.Bit(int(n)) == 1 {
			return true
		}
	}
	return false
}

// reader reads SSH's wire types from bytes. After the first error it returns zero
// values.
type reader struct {
	data []byte
	err  error
}

func (r *reader) more() bool { return r.err == nil && len(r.data) > 0 }

func (r *reader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.data)) {
		r.err = errors.Join(r.err, errShort)
		r.data = nil
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

var errShort = errors.New("unexpected end")

func (r *reader) skip(n uint64) { r.take(n) }

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) string() []byte { return r.take(uint64(r.uint32())) }
