package attach

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// sizes records the size of the buffer of each read.
type sizes struct {
	from  io.Reader
	sizes []int
}

func (s *sizes) Read(b []byte) (int, error) {
	s.sizes = append(s.sizes, len(b))
	return s.from.Read(b)
}

func TestCopyStream(t *testing.T) {
	data := make([]byte, 3*bulkBuffer+17)
	_, _ = rand.Read(data) // it never fails
	for name, src := range map[string]io.Reader{
		"whole":          bytes.NewReader(data),
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(data)),
		"data with EOF":  iotest.DataErrReader(bytes.NewReader(data)),
		"half each time": iotest.HalfReader(bytes.NewReader(data)),
	} {
		var got bytes.Buffer
		if err := copyStream(&got, src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s: %d bytes arrived of %d, or other ones", name, got.Len(), len(data))
		}
	}
}

func TestCopyStreamHoldsALargeBufferOnlyForMuchData(t *testing.T) {
	src := &sizes{from: io.MultiReader(
		bytes.NewReader(make([]byte, 10)),                      // a prompt
		bytes.NewReader(make([]byte, idleBuffer+bulkBuffer+5)), // a listing
		bytes.NewReader(make([]byte, 10)),
	)}
	if err := copyStream(io.Discard, src); err != nil {
		t.Fatal(err)
	}
	want := []int{idleBuffer, idleBuffer, bulkBuffer, bulkBuffer, idleBuffer, idleBuffer}
	if len(src.sizes) != len(want) {
		t.Fatalf("reads of %v bytes, want %v", src.sizes, want)
	}
	for i := range want {
		if src.sizes[i] != want[i] {
			t.Fatalf("reads of %v bytes, want %v", src.sizes, want)
		}
	}
}

func TestCopyStreamReturnsTheErrorOfEitherSide(t *testing.T) {
	broken := errors.New("broken")
	if err := copyStream(io.Discard, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("reader: %v, want %v", err, broken)
	}
	r, w := io.Pipe()
	r.CloseWithError(broken)
	if err := copyStream(w, bytes.NewReader([]byte("text"))); !errors.Is(err, broken) {
		t.Errorf("writer: %v, want %v", err, broken)
	}
}
