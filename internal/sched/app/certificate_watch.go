package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

const (
	// certificateCheck is the time between two checks of the certificate's files.
	certificateCheck = 30 * time.Second
	// certificateWarning is the part of a certificate's life after which a certificate that
	// nobody has replaced is reported, and certificateRepeat how often.
	certificateWarning = 0.8
	certificateRepeat  = 6 * time.Hour
)

// watchCertificate reports a certificate that will expire or cannot be read. It returns an
// error if the CA has been replaced: the API server and new pods trust the one that was
// registered when this process began to serve, so that another one has to.
func (e *endpoint) watchCertificate(ctx context.Context, log *slog.Logger) error {
	if e.files == (TLSFiles{}) {
		return nil
	}
	tick := time.NewTicker(certificateCheck)
	defer tick.Stop()
	var reported time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := e.checkAuthority(); err != nil {
			return err
		}
		now := time.Now()
		if text := e.certificateTrouble(now); text != "" && now.Sub(reported) >= certificateRepeat {
			reported = now
			log.Error("certificate of the API role: "+text, "file", e.files.Certificate)
		}
	}
}

// checkAuthority returns an error if the file of the CA has another content now.
func (e *endpoint) checkAuthority() error {
	ca, err := os.ReadFile(e.files.CA)
	if err != nil || bytes.Equal(ca, e.ca) {
		return nil //nolint:nilerr // it is being replaced, or what was read before stays
	}
	return fmt.Errorf("the CA in %s has been replaced; this process ends so that the next one registers it", e.files.CA)
}

// certificateTrouble describes what is wrong with the certificate, "" if nothing is.
func (e *endpoint) certificateTrouble(now time.Time) string {
	c, err := e.certificate.Current()
	if err != nil {
		return fmt.Sprintf("the new files cannot be used, the previous certificate stays: %v", err)
	}
	life := c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)
	switch age := now.Sub(c.Leaf.NotBefore); {
	case age >= life:
		return "it has expired; replace the file"
	case age >= time.Duration(certificateWarning*float64(life)):
		return fmt.Sprintf("it expires at %s; replace the file", c.Leaf.NotAfter.Format(time.RFC3339))
	}
	return ""
}
