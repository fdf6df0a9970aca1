// Package flow copies what sessions and forwardings carry, and counts it.
package flow

import (
	"io"
	"sync"
	"sync/atomic"
)

// Most of what is copied are keys and lines, for which Small will do; it is what
// an idle flow holds, in bytes. Where more comes at a time, large buffers save
// system calls, and package ssh answers each read of a channel that is behind
// with a packet to the client.
const (
	Small = 16 << 10
	large = 128 << 10
)

var pool = sync.Pool{New: func() any { return new([large]byte) }}

// Copy copies until the end of from, or until to takes no more: then it returns
// why. n counts what was read. small is the buffer to begin with, and the one
// to wait with; bulk, if not nil, is called once, when that does not do.
func Copy(to io.Writer, from io.Reader, n *atomic.Int64, small []byte, bulk func()) error {
	buffer, big := small, (*[large]byte)(nil)
	defer func() {
		if big != nil {
			pool.Put(big)
		}
	}()
	for {
		k, err := from.Read(buffer)
		n.Add(int64(k))
		if k > 0 {
			if _, werr := to.Write(buffer[:k]); werr != nil {
				return werr
			}
		}
		switch {
		case err != nil:
			return nil // what a reader says at its end is no matter of the copy
		case big == nil && k == len(small):
			big = pool.Get().(*[large]byte)
			buffer = big[:]
			if bulk != nil {
				bulk()
				bulk = nil
			}
		case big != nil && k < len(small):
			pool.Put(big)
			buffer, big = small, nil
		}
	}
}
