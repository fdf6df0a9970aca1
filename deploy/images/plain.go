package images

import (
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// plain is a layer that is not compressed.
type plain struct {
	open   func() (io.ReadCloser, error)
	digest v1.Hash
	size   int64
}

// PlainLayer is a layer of what open opens, an uncompressed archive of tar(1).
// It is opened each time that the layer is read, from several goroutines
// perhaps.
func PlainLayer(open func() (io.ReadCloser, error)) (v1.Layer, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was read only
	digest, size, err := v1.SHA256(in)
	return &plain{open: open, digest: digest, size: size}, err
}

func (l *plain) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *plain) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *plain) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *plain) Uncompressed() (io.ReadCloser, error) { return l.open() }
func (l *plain) Size() (int64, error)                 { return l.size, nil }
func (l *plain) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
