// Package flow copies and counts the bytes of sessions and forwardings.
package flow

import (
	"io"
	"sync"
	"sync/atomic"
)

// Sizes of buffers in bytes. Small is enough for key strokes and lines, and is what an
// idle stream holds. Large buffers save system calls for bulk data, and packets to the
// client: package ssh sends one after each read of a channel that is behind.
const (
	Small = 16 << 10
	large = 128 << 10
)

var pool = sync.Pool{New: func() any { return new([large]byte) }}

// Copy copies until the end of from, or until to fails, and then returns the error. n
// counts the bytes that were read. Copy starts and waits with the buffer small; bulk,
// if not nil, is called once when that is too small.
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
			return nil // errors of the reader at its end do not concern the copy
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
