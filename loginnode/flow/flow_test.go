package flow

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// uneven is a reader that returns a text in pieces of any size, and records the
// requested sizes.
type uneven struct {
	rest  []byte
	rand  *rand.Rand
	sizes map[int]bool
}

func (u *uneven) Read(p []byte) (int, error) {
	if len(u.rest) == 0 {
		return 0, io.EOF
	}
	u.sizes[len(p)] = true
	limit := len(p)
	if u.rand.IntN(2) == 0 {
		limit = 1 + u.rand.IntN(limit)
	}
	n := copy(p[:limit], u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

func TestCopyKeepsEveryByte(t *testing.T) {
	text := make([]byte, 4<<20)
	for i := range text {
		text[i] = byte(i * i >> 8)
	}
	for _, small := range []int{1, 2 << 10, Small} {
		from := &uneven{rest: text, rand: rand.New(rand.NewPCG(1, uint64(small))), sizes: map[int]bool{}}
		if small == 1 {
			from.rest = text[:10_000]
		}
		want := from.rest
		var got bytes.Buffer
		var n atomic.Int64
		wider := 0
		if err := Copy(&got, from, &n, make([]byte, small), func() { wider++ }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) || n.Load() != int64(len(want)) {
			t.Errorf("buffer of %d: %d bytes of %d came, %d were counted", small, got.Len(), len(want), n.Load())
		}
		if wider != 1 || len(from.sizes) != 2 || !from.sizes[small] || !from.sizes[large] {
			t.Errorf("buffer of %d: bulk was called %d times, reads were of %v", small, wider, from.sizes)
		}
	}
}

type full struct{ room int }

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestCopyReportsWhichSideEnded(t *testing.T) {
	var n atomic.Int64
	if err := Copy(&full{1 << 20}, bytes.NewReader(make([]byte, 1<<20)), &n, make([]byte, Small), nil); err != nil || n.Load() != 1<<20 {
		t.Errorf("the reader: %v after %d", err, n.Load())
	}
	if err := Copy(&full{100_000}, bytes.NewReader(make([]byte, 1<<20)), &n, make([]byte, Small), nil); !errors.Is(err, errFull) {
		t.Errorf("the writer: %v", err)
	}
}
