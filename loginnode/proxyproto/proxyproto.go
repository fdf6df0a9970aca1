// Package proxyproto reads the header of the PROXY protocol, by which a load balancer
// names the client of a connection.
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// signature is the start of a version 2 header.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// maxLine is the maximum length of a version 1 header.
const maxLine = 107

// ErrHeader reports that a connection does not start with a valid PROXY header.
var ErrHeader = errors.New("not a PROXY header")

// Read reads a PROXY header, version 1 or 2, and returns the client's address. The
// address is invalid if the proxy itself is the client (a health check). Read reads
// no byte after the header.
func Read(r io.Reader) (netip.AddrPort, error) {
	first := make([]byte, len(signature))
	if _, err := io.ReadFull(r, first); err != nil {
		return netip.AddrPort{}, err
	}
	if string(first) == signature {
		return readVersion2(r)
	}
	if bytes.HasPrefix(first, []byte("PROXY ")) {
		return readVersion1(first, r)
	}
	return netip.AddrPort{}, ErrHeader
}

func readVersion1(first []byte, r io.Reader) (netip.AddrPort, error) {
	line := first
	one := make([]byte, 1)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) >= maxLine {
			return netip.AddrPort{}, ErrHeader
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
		return netip.AddrPort{}, ErrHeader
	}
	addr, err := netip.ParseAddr(f[2])
	if err != nil || addr.Is4() != (f[1] == "TCP4") || addr.Zone() != "" {
		return netip.AddrPort{}, ErrHeader
	}
	port, err := strconv.ParseUint(f[4], 10, 16)
	if err != nil {
		return netip.AddrPort{}, ErrHeader
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}

func readVersion2(r io.Reader) (netip.AddrPort, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return netip.AddrPort{}, err
	}
	body := make([]byte, binary.BigEndian.Uint16(head[2:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return netip.AddrPort{}, err
	}
	if head[0]>>4 != 2 {
		return netip.AddrPort{}, ErrHeader
	}
	if head[0]&0xf == 0 { // LOCAL
		return netip.AddrPort{}, nil
	}
	size := map[byte]int{0x11: 4, 0x21: 16}[head[1]] // TCP over IPv4, IPv6
	if head[0]&0xf != 1 || size == 0 || len(body) < 2*size+4 {
		return netip.AddrPort{}, ErrHeader
	}
	addr, _ := netip.AddrFromSlice(body[:size])
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(body[2*size:])), nil
}
