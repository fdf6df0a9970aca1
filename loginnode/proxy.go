package loginnode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// proxySignature begins a version 2 header of the PROXY protocol.
const proxySignature = "\r\n\r\n\x00\r\nQUIT\n"

// maxProxyLine is the longest version 1 header.
const maxProxyLine = 107

var errProxy = errors.New("not a PROXY header")

// readProxy reads a PROXY header, version 1 or 2, and returns the client's
// address; invalid: the proxy speaks for itself (a health check). It reads no
// byte after the header.
func readProxy(r io.Reader) (netip.AddrPort, error) {
	first := make([]byte, len(proxySignature))
	if _, err := io.ReadFull(r, first); err != nil {
		return netip.AddrPort{}, err
	}
	if string(first) == proxySignature {
		return readProxy2(r)
	}
	if bytes.HasPrefix(first, []byte("PROXY ")) {
		return readProxy1(first, r)
	}
	return netip.AddrPort{}, errProxy
}

func readProxy1(first []byte, r io.Reader) (netip.AddrPort, error) {
	line := first
	one := make([]byte, 1)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) >= maxProxyLine {
			return netip.AddrPort{}, errProxy
		}
		if _, err := io.ReadFull(r, one); err != nil {
			return netip.AddrPort{}, err
		}
		line = append(line, one[0])
	}
	f := strings.Split(strings.TrimSuffix(string(line), "\r\n"), " ")
	if len(f) >= 2 && f[1] == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if len(f) != 6 || f[1] != "TCP4" && f[1] != "TCP6" {
		return netip.AddrPort{}, errProxy
	}
	addr, err := netip.ParseAddr(f[2])
	if err != nil || addr.Is4() != (f[1] == "TCP4") || addr.Zone() != "" {
		return netip.AddrPort{}, errProxy
	}
	port, err := strconv.ParseUint(f[4], 10, 16)
	if err != nil {
		return netip.AddrPort{}, errProxy
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}

func readProxy2(r io.Reader) (netip.AddrPort, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return netip.AddrPort{}, err
	}
	body := make([]byte, binary.BigEndian.Uint16(head[2:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return netip.AddrPort{}, err
	}
	if head[0]>>4 != 2 {
		return netip.AddrPort{}, errProxy
	}
	if head[0]&0xf == 0 { // LOCAL
		return netip.AddrPort{}, nil
	}
	size := map[byte]int{0x11: 4, 0x21: 16}[head[1]] // TCP over IPv4, IPv6
	if head[0]&0xf != 1 || size == 0 || len(body) < 2*size+4 {
		return netip.AddrPort{}, errProxy
	}
	addr, _ := netip.AddrFromSlice(body[:size])
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(body[2*size:])), nil
}
