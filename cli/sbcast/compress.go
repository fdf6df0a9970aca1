package sbcast

import (
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/translate/option"
)

// compress tells whether what is sent is to be compressed. Slurm's libraries
// all mean the one that the agents know.
func (o *Options) compress(v *option.Values) bool {
	if !v.Has("compress") {
		return false
	}
	switch kind := strings.ToLower(v.Get("compress")); kind {
	case "none":
		return false
	case "", "lz4", "zlib", "zstd":
		return true
	default:
		fmt.Fprintf(o.p.Err, "sbcast: error: Compression type '%s' unknown, disabling compression support.\n", kind)
		return false
	}
}

// compressed is r compressed, until stop.
func compressed(r io.Reader) (out io.Reader, stop func()) {
	pr, pw := io.Pipe()
	go func() {
		w, err := zstd.NewWriter(pw, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
		if err == nil {
			_, err = io.Copy(w, r)
			if e := w.Close(); err == nil {
				err = e
			}
		}
		pw.CloseWithError(err) //nolint:errcheck // it never fails
	}()
	return pr, func() { pr.Close() }
}
