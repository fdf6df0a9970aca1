package attach

import (
	"errors"
	"io"
	"sync"
)

const (
	// idleBuffer is the size of the buffer that a connection holds while it waits for
	// data, which is what most connections with jobs do most of the time.
	idleBuffer = 2 << 10
	// bulkBuffer is the size of the buffer of a connection on which much data arrives.
	bulkBuffer = 32 << 10
)

var bulkBuffers = sync.Pool{New: func() any { return new([bulkBuffer]byte) }}

// copyStream copies until src ends or either side fails, as io.Copy does, but holds a large
// buffer only while the data that arrive fill the small one: io.Copy's 32 KB for each of a
// user's connections would add up. It returns nil if src has ended.
func copyStream(dst io.Writer, src io.Reader) error {
	small := make([]byte, idleBuffer)
	var large *[bulkBuffer]byte
	release := func() {
		if large != nil {
			bulkBuffers.Put(large)
			large = nil
		}
	}
	defer release()
	for {
		buffer := small
		if large != nil {
			buffer = large[:]
		}
		n, err := src.Read(buffer)
		if n > 0 {
			if _, failed := dst.Write(buffer[:n]); failed != nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n < idleBuffer:
			release()
		case large == nil:
			large = bulkBuffers.Get().(*[bulkBuffer]byte) //nolint:forcetypeassert // the pool has nothing else
		}
	}
}
