package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/berth-hpc/berth/internal/wire"
)

// programs makes a directory of programs that say who they are.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"agent", "berth", "berth-tools", "berth-tui", "loginnode", "scheduler"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("I am "+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, s Spec) v1.Image {
	t.Helper()
	image, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// content is what an image's file system holds, links with an arrow.
func content(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	all := mutate.Extract(image)
	defer func() { _ = all.Close() }()
	files := map[string]string{}
	for r := tar.NewReader(all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if h.Linkname != "" {
			text = "-> " + h.Linkname
		}
		files[h.Name] = text
	}
}

func amd64() v1.Platform { return v1.Platform{OS: "linux", Architecture: "amd64"} }

func TestImagesHaveTheirPrograms(t *testing.T) {
	base := build(t, Spec{Platform: amd64(), Files: []File{{Path: "bin/bash", Text: "a shell"}}, Env: []string{"PATH=/bin"}})
	parts := Parts{Platform: amd64(), Bin: programs(t), Links: []string{"sbatch", "squeue"}, Base: base, Labels: map[string]string{"version": "1"}}
	for name, c := range map[string]struct {
		spec       Spec
		user       string
		entrypoint string
		has        map[string]string
		hasNot     []string
	}{
		"scheduler": {parts.Scheduler(), nonRoot, "/scheduler", map[string]string{"scheduler": "I am scheduler", "etc/group": "root:x:0:\nnonroot:x:65532:\n"}, []string{"bin/sh", "berth/bin/agent"}},
		"agent": {parts.Agent(), nonRoot, wire.DefaultBinDir + "/agent",
			map[string]string{"berth/bin/agent": "I am agent", "berth/bin/berth": "I am berth", "berth/bin/sbatch": "-> berth", "berth/bin/squeue": "-> berth"},
			[]string{"etc/passwd", "scheduler", "berth/bin/loginnode"}},
		"commands": {parts.Commands(), nonRoot, "/usr/bin/berth", map[string]string{"usr/bin/berth-tui": "I am berth-tui", "usr/bin/squeue": "-> berth"}, []string{"berth/bin/agent"}},
		"login": {parts.Login(), "0:0", wire.DefaultBinDir + "/loginnode",
			map[string]string{"bin/bash": "a shell", "berth/bin/loginnode": "I am loginnode", "berth/bin/sbatch": "-> berth"}, []string{"scheduler"}},
	} {
		t.Run(name, func(t *testing.T) {
			image := build(t, c.spec)
			files := content(t, image)
			for path, want := range c.has {
				if got, there := files[path]; !there || got != want {
					t.Errorf("%s is %q", path, got)
				}
			}
			for _, path := range c.hasNot {
				if _, there := files[path]; there {
					t.Errorf("it holds %s", path)
				}
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.Config.User != c.user || !slices.Equal(config.Config.Entrypoint, []string{c.entrypoint}) || config.Architecture != "amd64" || config.Config.Labels["version"] != "1" {
				t.Errorf("%+v", config)
			}
		})
	}
}

// TestArchive: what is written is read again by others' code, is the same each
// time, and holds an image for each platform.
func TestArchive(t *testing.T) {
	var all []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		parts := Parts{Platform: v1.Platform{OS: "linux", Architecture: arch}, Bin: programs(t), Links: []string{"sbatch"}}
		all = append(all, build(t, parts.Agent()))
	}
	index, err := Index(all)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")
	for _, file := range []string{first, second} {
		if err := WriteArchive(file, map[string]v1.ImageIndex{"example.org/berth-agent:1": index}); err != nil {
			t.Fatal(err)
		}
	}
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Error("written twice it differs")
	}
	read, err := layout.ImageIndexFromPath(unpack(t, a))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(read); err != nil {
		t.Error(err)
	}
	manifest, err := read.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != "example.org/berth-agent:1" {
		t.Fatalf("%+v, %v", manifest, err)
	}
	inner, err := read.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := inner.IndexManifest()
	if err != nil || len(platforms.Manifests) != 2 || platforms.Manifests[1].Platform.Architecture != "arm64" {
		t.Errorf("%+v, %v", platforms, err)
	}
	if size, err := Size(all[0]); err != nil || size <= 0 || size > 10_000 {
		t.Errorf("size %d, %v", size, err)
	}
}

func unpack(t *testing.T, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlurmNames(t *testing.T) {
	names, err := SlurmNames("../../docs/man")
	if err != nil || !slices.Contains(names, "sbatch") || !slices.Contains(names, "sview") || slices.Contains(names, "berth-up") {
		t.Errorf("%v, %v", names, err)
	}
}

// TestPlain: an uncompressed layer has one digest, that of what is in it.
func TestPlain(t *testing.T) {
	image, err := Build(Parts{Platform: amd64(), Bin: programs(t), Plain: true}.Agent())
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	digest, _ := layers[0].Digest()
	if id, err := layers[0].DiffID(); err != nil || id != digest {
		t.Errorf("%v, %v, %v", id, digest, err)
	}
	if files := content(t, image); files["berth/bin/agent"] != "I am agent" {
		t.Errorf("%v", files)
	}
}
