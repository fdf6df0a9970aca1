package auth

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Options are the options of an authorized_keys line or a certificate (sshd(8),
// "AUTHORIZED_KEYS FILE FORMAT"). The zero value allows everything.
type Options struct {
	NoPTY, NoPortForwarding, NoAgent, NoUserRC bool
	NoTouch                                    bool

	// Command replaces whatever the client requests, if HasCommand.
	Command    string
	HasCommand bool

	From        string // patterns of client addresses; "": any
	Expiry      time.Time
	Environment []string // NAME=value
	// PermitOpen and PermitListen limit -L and -R to these host:port, where
	// nil limits nothing.
	PermitOpen, PermitListen []string

	CertAuthority bool
	Principals    []string // of the certificates of a cert-authority line
}

// Line is one usable line of authorized_keys.
type Line struct {
	Key     ssh.PublicKey
	Comment string
	Options Options
}

// maxLine bounds the length of a line of authorized_keys.
const maxLine = 64 << 10

// ParseLine parses a line of authorized_keys. It returns nil, nil for an empty line or a
// comment. A line with an unknown option is an error, because the option may be a
// restriction.
func ParseLine(line []byte) (*Line, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return nil, nil
	}
	if len(line) > maxLine {
		return nil, errors.New("line too long")
	}
	key, comment, options, rest, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 { // the parser skips lines that it cannot parse; this is one line
		return nil, errors.New("more than one line")
	}
	if _, isCert := key.(*ssh.Certificate); isCert {
		return nil, errors.New("a certificate is not a key")
	}
	o, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	return &Line{Key: key, Comment: comment, Options: o}, nil
}

func parseOptions(list []string) (Options, error) {
	var o Options
	for _, text := range list {
		name, value, has := strings.Cut(text, "=")
		var err error
		if has {
			if value, err = unquote(value); err != nil {
				return o, fmt.Errorf("option %s: %w", name, err)
			}
		}
		if err := o.set(strings.ToLower(name), value, has); err != nil {
			return o, err
		}
	}
	return o, nil
}

// unquote removes the quotes around an option's value; \" stands for a quote.
func unquote(v string) (string, error) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", errors.New("the value has no quotes")
	}
	return strings.ReplaceAll(v[1:len(v)-1], `\"`, `"`), nil
}

func (o *Options) set(name, value string, has bool) error {
	if has != valued[name] {
		if _, known := valued[name]; known {
			return fmt.Errorf("option %s: value wrong or missing", name)
		}
	}
	switch name {
	case "restrict":
		o.NoPTY, o.NoPortForwarding, o.NoAgent, o.NoUserRC = true, true, true, true
	case "no-pty":
		o.NoPTY = true
	case "pty":
		o.NoPTY = false
	case "no-port-forwarding":
		o.NoPortForwarding = true
	case "port-forwarding":
		o.NoPortForwarding = false
	case "no-agent-forwarding":
		o.NoAgent = true
	case "agent-forwarding":
		o.NoAgent = false
	case "no-user-rc":
		o.NoUserRC = true
	case "user-rc":
		o.NoUserRC = false
	case "no-x11-forwarding", "x11-forwarding": // X11 is never forwarded
	case "no-touch-required":
		o.NoTouch = true
	case "cert-authority":
		o.CertAuthority = true
	case "command":
		o.Command, o.HasCommand = value, true
	case "from":
		o.From = value
	case "environment":
		if !strings.Contains(value, "=") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("option environment: %q is not NAME=value", value)
		}
		o.Environment = append(o.Environment, value)
	case "permitopen":
		o.PermitOpen = append(o.PermitOpen, value)
	case "permitlisten":
		o.PermitListen = append(o.PermitListen, value)
	case "principals":
		o.Principals = strings.Split(value, ",")
	case "expiry-time":
		t, err := parseExpiry(value)
		if err != nil {
			return err
		}
		o.Expiry = t
	default:
		// verify-required and tunnel among them
		return fmt.Errorf("option %q is not supported", name)
	}
	return nil
}

// valued lists the options, and whether each has a value.
var valued = map[string]bool{
	"restrict": false, "no-pty": false, "pty": false, "no-port-forwarding": false, "port-forwarding": false,
	"no-agent-forwarding": false, "agent-forwarding": false, "no-user-rc": false, "user-rc": false,
	"no-x11-forwarding": false, "x11-forwarding": false, "no-touch-required": false, "cert-authority": false,
	"command": true, "from": true, "environment": true, "permitopen": true, "permitlisten": true,
	"principals": true, "expiry-time": true,
}

// parseExpiry parses YYYYMMDD[HHMM[SS]][Z]; without Z it is local time.
func parseExpiry(s string) (time.Time, error) {
	digits, zone := s, time.Local
	if d, utc := strings.CutSuffix(s, "Z"); utc {
		digits, zone = d, time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) == len(digits) {
			return time.ParseInLocation(layout, digits, zone)
		}
	}
	return time.Time{}, fmt.Errorf("option expiry-time: %q is not YYYYMMDD[HHMM[SS]][Z]", s)
}

// matchFrom reports whether an address matches the patterns: addresses with * and ?,
// and CIDR blocks; a matching one that starts with ! rejects it. Host names are not
// supported, because the owner of an address's reverse DNS would control them.
func matchFrom(patterns string, addr netip.Addr) bool {
	matched := false
	for _, p := range strings.Split(patterns, ",") {
		p, negated := strings.CutPrefix(strings.TrimSpace(p), "!")
		if !matchAddr(p, addr.Unmap().WithZone("")) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

func matchAddr(pattern string, addr netip.Addr) bool {
	if block, err := netip.ParsePrefix(pattern); err == nil {
		return block.Contains(addr)
	}
	if one, err := netip.ParseAddr(pattern); err == nil {
		return one.Unmap() == addr
	}
	ok, err := path.Match(pattern, addr.String())
	return err == nil && ok && !strings.ContainsAny(pattern, `[]\`)
}
