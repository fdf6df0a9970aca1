package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/smtp"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// sendTimeout is the timeout of one attempt.
const sendTimeout = 20 * time.Second

// Send delivers m according to the settings, to a web hook or by SMTP. It returns within
// sendTimeout. An error may be temporary.
func Send(ctx context.Context, s *v1alpha1.MailSettings, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if s.Webhook != "" {
		return post(ctx, s.Webhook, m)
	}
	return deliver(ctx, s, m)
}

func post(ctx context.Context, url string, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is read
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// deliver sends the mail by SMTP to a relay that accepts mail without a password, with
// TLS if the relay offers it.
func deliver(ctx context.Context, s *v1alpha1.MailSettings, m Message) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.SMTP)
	if err != nil {
		return err
	}
	if at, ok := ctx.Deadline(); ok {
		conn.SetDeadline(at) //nolint:errcheck // TCP connections have deadlines
	}
	host := relayHost(s.SMTP)
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		conn.Close() //nolint:errcheck // it failed already
		return err
	}
	defer c.Close() //nolint:errcheck // Quit has closed it when all went well
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(&tls.Config{ServerName: host}); err != nil {
			return err
		}
	}
	from := s.From
	if from == "" {
		from = "slurm@" + orLocal(s.Domain)
	}
	for _, step := range []func() error{
		func() error { return c.Mail(from) },
		func() error { return c.Rcpt(m.To) },
		func() error { return write(c, from, m) },
		c.Quit,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// relayHost returns the host of host:port, which the relay's certificate must name.
func relayHost(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func write(c *smtp.Client, from string, m Message) error {
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w,
		"From: %s\r\nTo: %s\r\nSubject: %s\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"+
			"Auto-Submitted: auto-generated\r\nX-Slurm-Job-Id: %d\r\n\r\n", from, m.To,
		mime.QEncoding.Encode("utf-8", m.Subject), m.JobID)
	if err != nil {
		return err
	}
	return w.Close()
}
