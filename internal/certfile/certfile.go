// Package certfile serves certificates from files that another program may replace at any
// time: cert-manager, a site's own job, or the local cluster. A process that runs for
// longer than its first certificate is valid therefore needs no restart.
package certfile

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
)

// File is a certificate with its key. It is safe for concurrent use.
type File struct {
	cert, key string // paths; "": the certificate never changes

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]os.FileInfo // of the files that current was read from
	failed  error          // of the last attempt to read changed files
}

// Open reads a certificate and its key from PEM files.
func Open(cert, key string) (*File, error) {
	f := &File{cert: cert, key: key}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// Fixed returns a File for a certificate that is in no file.
func Fixed(c tls.Certificate) *File { return &File{current: &c} }

// Server is for tls.Config.GetCertificate.
func (f *File) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, _ := f.Current()
	return c, nil
}

// Client is for tls.Config.GetClientCertificate.
func (f *File) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c, _ := f.Current()
	return c, nil
}

// Current returns the certificate. It reads the files again if they have changed. If they
// cannot be read, or do not belong together because only one of them has been replaced so
// far, it returns the previous certificate and the error.
func (f *File) Current() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cert != "" && (f.failed != nil || f.changed()) {
		f.failed = f.load()
	}
	return f.current, f.failed
}

// changed reports whether one of the files is not the one that was read.
func (f *File) changed() bool {
	for i, path := range []string{f.cert, f.key} {
		now, err := os.Stat(path)
		if err != nil || !os.SameFile(now, f.read[i]) || now.Size() != f.read[i].Size() ||
			!now.ModTime().Equal(f.read[i].ModTime()) {
			return true
		}
	}
	return false
}

func (f *File) load() error {
	// The files are described before they are read, so that a later change is noticed.
	var read [2]os.FileInfo
	for i, path := range []string{f.cert, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		read[i] = info
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.cert, f.key, err)
	}
	f.current, f.read = &pair, read
	return nil
}
