package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/step"
)

// TestReceive: a file gets its name only when all of it has come, compressed or
// not, and nothing stays of one that has not.
func TestReceive(t *testing.T) {
	content := bytes.Repeat([]byte("all work and no play\n"), 10_000)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll(content, nil)
	sum := sha256.Sum256(content)
	for name, tt := range map[string]struct {
		packed bool
		input  []byte
		says   string // empty: it works
	}{
		"plain":          {false, content, ""},
		"compressed":     {true, packed, ""},
		"cut":            {false, content[:1000], "the file arrived damaged\n"},
		"too long":       {false, append(bytes.Clone(content), 'x'), "the file arrived damaged\n"},
		"packed and cut": {true, packed[:len(packed)/2], "unexpected EOF\n"},
		"not packed":     {true, content, "the file arrived damaged\n"},
		"other":          {false, bytes.ToUpper(content), "the file arrived damaged\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := &step.Receive{
				Path: filepath.Join(dir, "f"), Size: int64(len(content)), Sum: hex.EncodeToString(sum[:]), Mode: 0o640, Compressed: tt.packed,
			}
			description, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			code := receive(string(description), bytes.NewReader(tt.input), &errs)
			if errs.String() != tt.says || (code == 0) != (tt.says == "") {
				t.Errorf("code %d, %q; want %q", code, errs.String(), tt.says)
			}
			got, err := os.ReadFile(r.Path)
			if tt.says == "" && !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || tt.says != "" && len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
