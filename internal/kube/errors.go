package kube

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Kind is the kind of a failure, for callers that handle some of them.
type Kind int

// Kinds of Error.
const (
	Other         Kind = iota
	NoCluster          // no cluster is configured
	BadConfig          // the kubeconfig cannot be used
	Unreachable        // no connection
	Untrusted          // the server's certificate is not trusted
	Expired            // 401
	Forbidden          // 403
	Denied             // refused by Berth's admission; Message is its text
	NotFound           // 404
	AlreadyExists      // 409 of a create
	Conflict           // 409 of an update
	Invalid            // 400, 422
	Unavailable        // 5xx, 429: may work later
	Busy               // refused by Berth's admission for now: the queue is full; Message is its text
)

// Error is a failed request. Message is one line that also says what to do.
type Error struct {
	Kind    Kind
	Code    int    // HTTP status; 0: none
	Reason  string // of the API's Status; empty: none
	Message string
	Cause   error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of an error of this package, Other for any other error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Other
}

// ReasonOf returns the reason in the API's response to a failed request, or "".
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// IsRetryable reports whether the request may have been carried out although its
// response did not arrive, or may succeed if it is sent again soon. If the connection
// could not be opened at all, the server has seen nothing and a retry rarely helps.
func IsRetryable(err error) bool {
	var op *net.OpError
	connected := !errors.As(err, &op) || op.Op != "dial"
	switch KindOf(err) {
	case Unavailable:
		return true
	case Unreachable:
		return connected && !errors.Is(err, context.Canceled)
	}
	return false
}

// transportError returns the error for a request that got no response.
func (c *Client) transportError(err error) *Error {
	server := c.cfg.Server
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var pluginError *Error
	switch {
	case errors.As(err, &pluginError):
		return pluginError
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return &Error{Kind: Untrusted, Cause: err, Message: fmt.Sprintf(
			"the certificate of %s is not trusted (%v): use the kubeconfig of this cluster (%s is in use)",
			server, rootCause(err), c.cfg.Source)}
	case c.cfg.Local && errors.Is(err, syscall.ECONNREFUSED):
		start := "berth up"
		if c.cfg.StateDir != "" {
			start += " --state-dir " + c.cfg.StateDir
		}
		return &Error{Kind: Unreachable, Cause: err,
			Message: fmt.Sprintf("the local cluster at %s is not running: start it with '%s'", server, start)}
	}
	return &Error{Kind: Unreachable, Cause: err, Message: fmt.Sprintf(
		"cannot reach the cluster at %s (%v): check that it runs, or set KUBECONFIG", server, rootCause(err))}
}

// rootCause returns the innermost cause of a network error, in a few words.
func rootCause(err error) error {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &dns):
		return fmt.Errorf("no such host: %s", dns.Name)
	case errors.As(err, &errno):
		return errno
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// statusObject is the part of a metav1.Status that statusError reads.
type statusObject struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
	Details struct {
		Causes []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"causes"`
	} `json:"details"`
}

// denial matches the message of the API server for a webhook's refusal, and the
// webhook's text in it. The API server has no structured form of it.
var denial = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^admission webhook "[^"]*" denied the request(?:: (.*)| without explanation)$`)
})

// statusError returns the error for a response that reports one.
func (c *Client) statusError(code int, body []byte) *Error {
	var s statusObject
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" || s.Message == "" {
		s = statusObject{Message: firstLine(body)}
	}
	e := &Error{Code: code, Reason: s.Reason, Message: s.Message}
	if m := denial().FindStringSubmatch(s.Message); m != nil {
		if e.Kind = Denied; code == http.StatusTooManyRequests {
			e.Kind = Busy
		}
		e.Message = cmp.Or(m[1], s.Message)
		return e
	}
	switch {
	case code == http.StatusUnauthorized:
		e.Kind = Expired
		e.Message = fmt.Sprintf("%s does not accept your credential (expired?): get a new one (%s is in use)",
			c.cfg.Server, c.cfg.Source)
		if until := c.expiry(); !until.IsZero() && c.now().After(until) {
			e.Message = fmt.Sprintf("the certificate in %s expired at %s: get a new kubeconfig for %s",
				c.cfg.Source, until.Local().Format("2006-01-02T15:04:05"), c.cfg.Server)
		}
	case code == http.StatusForbidden:
		e.Kind = Forbidden
	case code == http.StatusNotFound:
		e.Kind = NotFound
	case code == http.StatusConflict && s.Reason == "AlreadyExists":
		e.Kind = AlreadyExists
	case code == http.StatusConflict:
		e.Kind = Conflict
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		e.Kind = Invalid
	case code == http.StatusTooManyRequests, code >= 500:
		e.Kind = Unavailable
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("%s answered %d %s", c.cfg.Server, code, http.StatusText(code))
	}
	return e
}

// firstLine returns the start of a body that is not a Status, for the message.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if len(line) > 200 {
		line = line[:200]
	}
	return line
}
