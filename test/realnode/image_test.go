package realnode

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// readTar returns the content of each entry, and the names in order.
func readTar(t *testing.T, r io.Reader) (map[string]string, []string) {
	t.Helper()
	files, names := map[string]string{}, []string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, names
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b) + h.Linkname
		names = append(names, h.Name)
	}
}

func TestAgentImageHoldsCommandsAndLinksUnderBerthBin(t *testing.T) {
	dir := t.TempDir()
	built, bin := filepath.Join(dir, "built"), filepath.Join(dir, "bin")
	must(t, os.Mkdir(built, 0o755))
	for _, name := range []string{"agent", "berth", "scheduler"} {
		must(t, os.WriteFile(filepath.Join(built, name), []byte("I am "+name), 0o700))
	}
	must(t, os.Symlink("berth", filepath.Join(built, "sinfo")))
	must(t, copyCommands(built, bin))
	archive := filepath.Join(dir, "agent.tar")
	must(t, makeAgentImage(archive, bin))

	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	files, _ := readTar(t, f)
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	must(t, json.Unmarshal([]byte(files["manifest.json"]), &manifest))
	if len(manifest) != 1 || !slices.Equal(manifest[0].RepoTags, []string{AgentImage}) {
		t.Fatalf("manifest %+v", manifest)
	}
	layer := files[manifest[0].Layers[0]]
	checkDigest(t, files[manifest[0].Config], layer)
	f, err = os.CreateTemp(dir, "")
	must(t, err)
	defer f.Close()
	_, err = f.WriteString(layer)
	must(t, err)
	_, err = f.Seek(0, io.SeekStart)
	must(t, err)
	content, names := readTar(t, f)
	want := []string{"berth/", "berth/bin/", "berth/bin/agent", "berth/bin/berth", "berth/bin/sinfo"}
	if !slices.Equal(names, want) {
		t.Errorf("layer holds %q, want %q", names, want)
	}
	if content["berth/bin/agent"] != "I am agent" || content["berth/bin/sinfo"] != "berth" {
		t.Errorf("content %q", content)
	}
}

func checkDigest(t *testing.T, config, layer string) {
	t.Helper()
	var c struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	must(t, json.Unmarshal([]byte(config), &c))
	sum := sha256.Sum256([]byte(layer))
	if want := []string{"sha256:" + hex.EncodeToString(sum[:])}; !slices.Equal(c.RootFS.DiffIDs, want) {
		t.Errorf("diff ids %v, want %v", c.RootFS.DiffIDs, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
