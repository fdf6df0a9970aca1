package images

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteArchive writes an image layout of OCI, packed by tar, with the images of
// several names; containerd and others import them under those names.
func WriteArchive(file string, named map[string]v1.ImageIndex) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".layout-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left of it harms nobody
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		err = p.AppendIndex(named[name], layout.WithAnnotations(map[string]string{
			"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}))
		if err != nil {
			return err
		}
	}
	return pack(file, dir)
}

// pack writes a directory's files, in the order of their names and without times.
func pack(file, dir string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	defer func() { err = errors.Join(err, w.Close()) }()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packFile(w, filepath.ToSlash(name), path)
	})
}

func packFile(w *tar.Writer, name, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read only
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
