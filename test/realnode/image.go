package realnode

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/berth-hpc/berth/deploy/images"
)

// Images of the site; nodes have them from the start.
const (
	// SystemImage has bash, OpenMPI, MPICH and mpi4py.
	SystemImage = "berth.test/system:local"
	// ShellImage contains one program, a shell, and no other file.
	ShellImage = "berth.test/shell:local"
	// PauseImage is the image of pod sandboxes.
	PauseImage = "berth.test/pause:local"
	// DNSImage is CoreDNS.
	DNSImage = "berth.test/coredns:local"
	// registry is that of Berth's own images, whose names are the release's.
	registry = "berth.test"
	// tag is theirs.
	tag = "local"
)

// systemPackages are the packages of SystemImage beside Debian's essential ones.
const (
	suite          = "bookworm"
	systemPackages = "bash,hostname,openmpi-bin,mpich,python3-mpi4py,openssh-sftp-server"
)

// makeSystem creates the root file system of a small Debian for MPI jobs and logins, as
// an archive of tar(1).
func makeSystem(ctx context.Context, _ string) (string, error) {
	return cached(ctx, "system", keyOf(suite, systemPackages), func(ctx context.Context, path string) error {
		return run(ctx, "", nil, "mmdebstrap", "--variant=essential", "--include="+systemPackages,
			`--aptopt=APT::Install-Recommends "false"`, "--aptopt=Acquire::Retries \"3\"",
			"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
			"--dpkgopt=path-exclude=/usr/share/locale/*", "--format=tar", suite, path)
	})
}

// makePause builds the program of pod sandboxes.
func makePause(ctx context.Context, root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, "test", "realnode", "pause", "main.go"))
	if err != nil {
		return "", err
	}
	return cached(ctx, "pause", keyOf(string(source)), func(ctx context.Context, path string) error {
		return run(ctx, root, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w", "-o", path,
			"./test/realnode/pause")
	})
}

// platform is the machine's.
func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// systemImage is the image of a root file system.
func systemImage(file string) (v1.Image, error) {
	layer, err := images.PlainLayer(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform().OS, platform().Architecture
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return mutate.ConfigFile(image, config)
}

// writeImages writes the archive that every node imports: Berth's images as a
// release has them, of the programs in build, and those of the site.
func (t tools) writeImages(ctx context.Context, archive, root, build string) error {
	system, err := systemImage(t.System)
	if err != nil {
		return fmt.Errorf("system: %w", err)
	}
	links, err := images.SlurmNames(filepath.Join(root, "docs", "man"))
	if err != nil {
		return err
	}
	parts := images.Parts{Platform: platform(), Bin: build, Links: links, Base: system, Plain: true}
	scheduler := parts.Scheduler()
	more, err := libraries(ctx, filepath.Join(build, "scheduler"))
	if err != nil {
		return err
	}
	scheduler.Files = append(scheduler.Files, more...)
	named, err := index(SystemImage, system)
	if err != nil {
		return err
	}
	for name, spec := range map[string]images.Spec{
		berthImage(images.Scheduler): scheduler,
		berthImage(images.Agent):     parts.Agent(),
		berthImage(images.Login):     parts.Login(),
		PauseImage: {
			Files: []images.File{{Path: "pause", From: t.Pause}}, Entrypoint: []string{"/pause"},
		},
		DNSImage: {
			Files: []images.File{{Path: "coredns", From: t.CoreDNS}}, Entrypoint: []string{"/coredns"},
		},
		ShellImage: {Files: []images.File{{Path: "bin/sh", From: shell}}},
	} {
		spec.Platform, spec.Plain = parts.Platform, true
		image, err := images.Build(spec)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		one, err := index(name, image)
		if err != nil {
			return err
		}
		named[name] = one[name]
	}
	return images.WriteArchive(archive, named)
}

// shell is Debian's static busybox.
const shell = "/bin/busybox"

// berthImage is the full name of one of Berth's images.
func berthImage(name string) string { return registry + "/" + name + ":" + tag }

func index(name string, image v1.Image) (map[string]v1.ImageIndex, error) {
	i, err := images.Index([]v1.Image{image})
	return map[string]v1.ImageIndex{name: i}, err
}
