package agent

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
)

// TestReceive checks that a file gets its name only when it is complete, compressed or
// not, and that nothing remains of an incomplete file.
func TestReceive(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("all work and no play\n"), 10_000)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll(content, nil)
	sum := sumOf(content)
	for name, tt := range map[string]struct {
		compressed bool
		input      []byte
		message    string // empty: it works
	}{
		"plain":              {false, content, ""},
		"compressed":         {true, packed, ""},
		"cut":                {false, content[:1000], "the received file is damaged\n"},
		"too long":           {false, append(bytes.Clone(content), 'x'), "the received file is damaged\n"},
		"compressed and cut": {true, packed[:len(packed)/2], "unexpected EOF\n"},
		"not compressed":     {true, content, "the received file is damaged\n"},
		"other":              {false, bytes.ToUpper(content), "the received file is damaged\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := &step.FileSpec{
				Path:       filepath.Join(dir, "f"),
				Size:       int64(len(content)),
				Checksum:   sum,
				Mode:       0o640,
				Compressed: tt.compressed,
			}
			description, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			code := receiveFile(string(description), io.NopCloser(bytes.NewReader(tt.input)), &errs)
			if errs.String() != tt.message || (code == 0) != (tt.message == "") {
				t.Errorf("code %d, %q; want %q", code, errs.String(), tt.message)
			}
			got, err := os.ReadFile(r.Path)
			if tt.message == "" && !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || tt.message != "" && len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestReceiveErrors checks the exit code and the message about files that cannot be
// written, and that existing files remain unchanged.
func TestReceiveErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, directory := filepath.Join(dir, "there"), filepath.Join(dir, "directory")
	if err := os.WriteFile(there, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path    string
		force   bool
		code    int
		message string
	}{
		{there, false, 17, "File exists\n"},
		{directory, false, 17, "File exists\n"},
		{directory, true, 21, "Is a directory\n"},
		{filepath.Join(dir, "no", "x"), false, 2, "No such file or directory\n"},
		{filepath.Join(there, "x"), true, 20, "Not a directory\n"},
		{"/proc/x", true, 2, "No such file or directory\n"},
	} {
		if code, message := received(t, &step.FileSpec{Path: tt.path, Force: tt.force}); code != tt.code ||
			message != tt.message {
			t.Errorf("%s: %d, %q; want %d, %q", tt.path, code, message, tt.code, tt.message)
		}
	}
	if got, err := os.ReadFile(there); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}

func sumOf(content []byte) string {
	sum := bcast.NewChecksum()
	sum.Write(content) //nolint:errcheck // it never fails
	return hex.EncodeToString(sum.Sum(nil))
}

// received writes "new" to the file that r describes, and returns the exit code and the
// message.
func received(t *testing.T, r *step.FileSpec) (int, string) {
	t.Helper()
	r.Size, r.Mode, r.Checksum = 3, 0o600, sumOf([]byte("new"))
	description, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	return receiveFile(string(description), io.NopCloser(strings.NewReader("new")), &errs), errs.String()
}

// TestReceivePermissions checks that a user can overwrite a writable file in a read-only
// directory, and cannot overwrite a read-only file.
func TestReceivePermissions(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	write := func(name string) (int, string) {
		return received(t, &step.FileSpec{Path: filepath.Join(dir, name), Force: true})
	}
	for name, mode := range map[string]os.FileMode{"mine": 0o600, "fixed": 0o400} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if code, message := write("fixed"); code != 13 || message != "Permission denied\n" {
		t.Errorf("a read-only file: %d, %q", code, message)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) //nolint:errcheck // the test's directory is removed after it
	if code, message := write("other"); code != 13 || message != "Permission denied\n" {
		t.Errorf("a new file: %d, %q", code, message)
	}
	if code, message := write("mine"); code != 0 {
		t.Errorf("an existing writable file: %d, %q", code, message)
	}
}

// fullOnClose is a file on a file system that reports only on close that no space is
// left, as NFS does.
type fullOnClose struct{ *os.File }

func (f fullOnClose) Close() error {
	_ = f.File.Close()
	return &os.PathError{Op: "close", Path: f.Name(), Err: unix.EDQUOT}
}

func TestReceiveReportsTheErrorOfClose(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	r := &step.FileSpec{Path: f.Name(), Size: 3, Checksum: sumOf([]byte("abc")), Mode: 0o600}
	if err := fillAndClose(fullOnClose{f}, r, strings.NewReader("abc")); exitCodeOf(err) != int(unix.EDQUOT) {
		t.Errorf("%v, code %d", err, exitCodeOf(err))
	}
}
