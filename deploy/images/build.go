package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one entry of a layer: a copy of a file, its text, a link or a directory.
type File struct {
	Path string // in the image, without a leading slash; a directory's ends in one
	From string // the file to copy
	Text string // or: what is in it
	Link string // or: target of a symbolic link
	Mode int64  // 0: 0755 for copies and directories, 0644 for text
}

// Spec is what an image holds.
type Spec struct {
	Platform   v1.Platform
	Base       v1.Image // nil: nothing
	Files      []File
	Entrypoint []string
	User       string // "": root
	Env        []string
	// Labels are those of the image's configuration.
	Labels map[string]string
	// Plain leaves the layer uncompressed, for images that travel no further
	// than this machine.
	Plain bool
}

// Build makes the image. It reads the files; the result holds them in memory.
func Build(s Spec) (v1.Image, error) {
	layer, err := s.layer()
	if err != nil {
		return nil, err
	}
	base := s.Base
	if base == nil {
		base = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer,
		History: v1.History{CreatedBy: "berth deploy/images"}})
	if err != nil {
		return nil, err
	}
	return s.configure(image)
}

// configure sets how the image is run; values of the base that s does not have stay.
func (s Spec) configure(image v1.Image) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = s.Platform.OS, s.Platform.Architecture, s.Platform.Variant
	if s.Entrypoint != nil {
		file.Config.Entrypoint, file.Config.Cmd = s.Entrypoint, nil
	}
	if s.User != "" {
		file.Config.User = s.User
	}
	file.Config.Env = append(file.Config.Env, s.Env...)
	if file.Config.Labels == nil && s.Labels != nil {
		file.Config.Labels = map[string]string{}
	}
	for k, v := range s.Labels {
		file.Config.Labels[k] = v
	}
	return mutate.ConfigFile(image, file)
}

// layer packs the files.
func (s Spec) layer() (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	directories := map[string]bool{}
	for _, f := range s.Files {
		if err := addFile(w, f, directories); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	if s.Plain {
		return PlainLayer(open)
	}
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// addFile writes an entry and the directories above it, which written remembers.
func addFile(w *tar.Writer, f File, written map[string]bool) error {
	if err := addDirs(w, path.Dir(strings.TrimSuffix(f.Path, "/")), written); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(f.Path, "/"):
		written[strings.TrimSuffix(f.Path, "/")] = true
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: f.Path, Mode: mode(f, 0o755)})
	case f.Link != "":
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.Path, Linkname: f.Link, Mode: 0o777})
	case f.From == "":
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: mode(f, 0o644),
			Size: int64(len(f.Text))}); err != nil {
			return err
		}
		_, err := io.WriteString(w, f.Text)
		return err
	}
	in, err := os.Open(f.From)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read only
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: mode(f, 0o755),
		Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

func mode(f File, usual int64) int64 {
	if f.Mode != 0 {
		return f.Mode
	}
	return usual
}

func addDirs(w *tar.Writer, dir string, written map[string]bool) error {
	if dir == "." || written[dir] {
		return nil
	}
	if err := addDirs(w, path.Dir(dir), written); err != nil {
		return err
	}
	written[dir] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
}

// Index joins the images of one name for several platforms.
func Index(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		file, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: file.Platform()}})
	}
	return index, nil
}

// Size is what a registry stores of an image and a node fetches: its manifest,
// configuration and layers, in bytes.
func Size(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	sum, err := image.Size()
	if err != nil {
		return 0, err
	}
	for _, d := range slices.Concat(manifest.Layers, []v1.Descriptor{manifest.Config}) {
		sum += d.Size
	}
	return sum, nil
}
