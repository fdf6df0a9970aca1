package realnode

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Images of the site; nodes have them from the start.
const (
	// SystemImage has bash, OpenMPI and mpi4py.
	SystemImage = "berth.test/system:local"
	// AgentImage has the agent's folder at /berth/bin and nothing else.
	AgentImage = "berth.test/agent:local"
	// SchedulerImage is Berth's scheduler.
	SchedulerImage = "berth.test/scheduler:local"
)

// systemPackages are what SystemImage holds beside Debian's essential ones.
const (
	suite          = "bookworm"
	systemPackages = "bash,hostname,openmpi-bin,python3-mpi4py"
)

// makeSystemImage makes the image of a small Debian with what MPI jobs need.
func makeSystemImage(ctx context.Context, _ string) (string, error) {
	return cached(ctx, "system", keyOf(suite, systemPackages, SystemImage), func(ctx context.Context, path string) error {
		layer := path + ".layer"
		err := run(ctx, "", nil, "mmdebstrap", "--variant=essential", "--include="+systemPackages,
			`--aptopt=APT::Install-Recommends "false"`, "--aptopt=Acquire::Retries \"3\"",
			"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
			"--dpkgopt=path-exclude=/usr/share/locale/*", "--format=tar", suite, layer)
		if err != nil {
			return err
		}
		return writeImage(path, SystemImage, nil, layer)
	})
}

// makePauseImage makes the image of pod sandboxes.
func makePauseImage(ctx context.Context, root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, "test", "realnode", "pause", "main.go"))
	if err != nil {
		return "", err
	}
	return cached(ctx, "pause", keyOf(string(source), PauseImage), func(ctx context.Context, path string) error {
		binary := path + ".bin"
		if err := run(ctx, root, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w", "-o", binary, "./test/realnode/pause"); err != nil {
			return err
		}
		layer := path + ".layer"
		if err := writeLayer(layer, []layerFile{{name: "pause", from: binary}}); err != nil {
			return err
		}
		return writeImage(path, PauseImage, []string{"/pause"}, layer)
	})
}

// layerFile is one entry of a layer: a copy of a file, or a link.
type layerFile struct {
	name string // path in the image, without a leading slash
	from string // path of the file to copy
	link string // or: target of a symbolic link
}

// writeLayer writes a layer with the files and the folders above them.
func writeLayer(path string, files []layerFile) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	folders := map[string]bool{}
	for _, f := range files {
		if err := writeFolders(w, filepath.Dir(f.name), folders); err != nil {
			return err
		}
		if err := writeFile(w, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func writeFolders(w *tar.Writer, dir string, written map[string]bool) error {
	if dir == "." || written[dir] {
		return nil
	}
	if err := writeFolders(w, filepath.Dir(dir), written); err != nil {
		return err
	}
	written[dir] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
}

func writeFile(w *tar.Writer, f layerFile) error {
	if f.link != "" {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.name, Linkname: f.link, Mode: 0o777})
	}
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o755, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// writeImage writes an archive as "docker save" does, with one layer, which it
// removes.
func writeImage(path, name string, entrypoint []string, layer string) error {
	defer os.Remove(layer)
	digest, err := fileDigest(layer)
	if err != nil {
		return err
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": entrypoint, "Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for file, content := range map[string][]byte{"config.json": config, "manifest.json": manifest} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	if err := writeFile(w, layerFile{name: "layer.tar", from: layer}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return strings.ToLower(hex.EncodeToString(h.Sum(nil))), nil
}
