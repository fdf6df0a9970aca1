package peer

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// recorder is a connection that counts writes and reads.
type recorder struct {
	net.Conn
	written       bytes.Buffer
	toRead        io.Reader
	writes, reads int
}

func (r *recorder) Write(b []byte) (int, error) {
	r.writes++
	return r.written.Write(b)
}

func (r *recorder) Read(b []byte) (int, error) {
	r.reads++
	return r.toRead.Read(b)
}

// TestBatchWritesOnce: what is written between start and end is one write, unless it is large.
func TestBatchWritesOnce(t *testing.T) {
	record := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	for _, tt := range []struct{ records, writes int }{{1, 1}, {5, 1}, {maxBatch/len(record) + 1, 2}} {
		r := &recorder{}
		b := &batch{Conn: r}
		b.start()
		for range tt.records {
			if n, err := b.Write(record); n != len(record) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if err := b.end(); err != nil || r.writes != tt.writes || r.written.Len() != tt.records*len(record) {
			t.Errorf("%d records: %d writes, %d bytes, %v", tt.records, r.writes, r.written.Len(), err)
		}
		if _, err := b.Write([]byte("x")); err != nil || r.writes != tt.writes+1 {
			t.Errorf("outside of a batch: %d writes, %v", r.writes, err)
		}
	}
}

// TestBatchReadsAhead: a connection that carries much is read in large pieces, one that carries
// little needs no buffer, and all bytes arrive.
func TestBatchReadsAhead(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	r := &recorder{toRead: bytes.NewReader(data)}
	b := &batch{Conn: r}
	got, err := io.ReadAll(io.LimitReader(b, 100))
	if err != nil || b.ahead != nil {
		t.Fatalf("a buffer for little, %v", err)
	}
	piece := make([]byte, largeRead)
	for err == nil {
		var n int
		n, err = b.Read(piece)
		got = append(got, piece[:n]...)
	}
	if !errors.Is(err, io.EOF) || !bytes.Equal(got, data) || r.reads > len(data)/readAhead+8 {
		t.Errorf("%d of %d bytes in %d reads, %v", len(got), len(data), r.reads, err)
	}
}
