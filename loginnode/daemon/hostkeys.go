package daemon

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/durable"
)

// hostKeys reads the private keys of a directory (a mounted Secret, usually), so
// that every replica and every start shows the same ones.
func hostKeys(dir string, generate bool) ([]ssh.Signer, error) {
	if dir == "" {
		return nil, errors.New("hostKeys: no directory")
	}
	keys, err := readHostKeys(dir)
	if generate && (errors.Is(err, fs.ErrNotExist) || err == nil && len(keys) == 0) {
		if err := makeHostKeys(dir); err != nil {
			return nil, fmt.Errorf("host keys: %w", err)
		}
		keys, err = readHostKeys(dir)
	}
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("hostKeys: no private key in %s", dir)
	}
	return keys, err
}

func readHostKeys(dir string) ([]ssh.Signer, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []ssh.Signer
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(name, ".pub") ||
			strings.HasSuffix(name, durable.Suffix) {
			continue
		}
		st, err := os.Stat(name) // a Secret's files are links
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() || st.Size() == 0 { // a file system that broke can leave empty files
			continue
		}
		if st.Mode()&0o007 != 0 {
			return nil, fmt.Errorf("host key %s: everybody may read it (%04o)", name, st.Mode().Perm())
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := ssh.ParsePrivateKey(data)
		if err != nil {
			return nil, fmt.Errorf("host key %s: %w", name, err)
		}
		if s, err = modern(s); err != nil {
			return nil, fmt.Errorf("host key %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// modern keeps an RSA key from signing with SHA-1, and refuses DSA.
func modern(s ssh.Signer) (ssh.Signer, error) {
	switch s.PublicKey().Type() {
	case ssh.KeyAlgoRSA:
		a, ok := s.(ssh.AlgorithmSigner)
		if !ok {
			return nil, errors.New("an RSA key that signs with SHA-1 only")
		}
		return ssh.NewSignerWithAlgorithms(a, []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return s, nil
	}
	return nil, fmt.Errorf("keys of type %s are not accepted", s.PublicKey().Type())
}

const rsaBits = 3072

func makeHostKeys(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	old, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return err
	}
	for name, key := range map[string]crypto.PrivateKey{"ssh_host_ed25519_key": ed, "ssh_host_rsa_key": old} {
		if err := writeHostKey(filepath.Join(dir, name), key); err != nil {
			return err
		}
	}
	return nil
}

func writeHostKey(name string, key crypto.PrivateKey) error {
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return err
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		durable.Write(name, pem.EncodeToMemory(block), 0o600),
		durable.Write(name+".pub", ssh.MarshalAuthorizedKey(s.PublicKey()), 0o644))
}
