package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
)

// unread is an input that must be closed and not be read.
type unread struct {
	t      *testing.T
	closed bool
}

func (u *unread) Read([]byte) (int, error) {
	u.t.Error("the input was read")
	return 0, io.EOF
}

func (u *unread) Close() error {
	u.closed = true
	return nil
}

// describe returns the description of a new file with these contents, to be copied to dest.
func describe(t *testing.T, contents []byte, dest string) *step.FileSpec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(path, contents, 0o640); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	spec, err := bcast.Describe(f)
	if err != nil || spec.Source == nil {
		t.Fatalf("%+v, %v", spec, err)
	}
	spec.Path = dest
	return spec
}

// receive runs a task of sbcast and returns its exit code and message.
func receive(t *testing.T, spec *step.FileSpec, in io.ReadCloser) (int, string) {
	t.Helper()
	description, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	return receiveFile(string(description), in, &errs), errs.String()
}

// only checks that a directory has one file, with these contents, or none if they are nil.
func only(t *testing.T, dir, name string, contents []byte) {
	t.Helper()
	var want []string
	if contents != nil {
		want = append(want, name)
		if got, err := os.ReadFile(filepath.Join(dir, name)); !bytes.Equal(got, contents) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != len(want) || len(want) > 0 && list[0].Name() != name {
		t.Errorf("the directory has %v, %v; want %q", list, err, want)
	}
}

// TestReceiveFromSource: a node on the client's machine reads the client's file, whether the
// transfer is compressed or not. One that sees another file at that path reads its input.
func TestReceiveFromSource(t *testing.T) {
	t.Parallel()
	contents := bytes.Repeat([]byte("all work and no play\n"), 50_000)
	for _, compressed := range []bool{false, true} {
		dir := t.TempDir()
		spec := describe(t, contents, filepath.Join(dir, "f"))
		spec.Compressed = compressed
		in := &unread{t: t}
		if code, text := receive(t, spec, in); code != 0 || !in.closed {
			t.Errorf("code %d, %s, closed %t", code, text, in.closed)
		}
		only(t, dir, "f", contents)
	}
	for name, change := range map[string]func(*step.Source){
		"another kernel": func(s *step.Source) { s.Kernel = "2" },
		"another file":   func(s *step.Source) { s.Inode++ },
		"another device": func(s *step.Source) { s.Device++ },
		"no file":        func(s *step.Source) { s.Path += "x" },
		"a directory":    func(s *step.Source) { s.Path = filepath.Dir(s.Path) },
	} {
		dir := t.TempDir()
		spec := describe(t, contents, filepath.Join(dir, "f"))
		change(spec.Source)
		if code, text := receive(t, spec, io.NopCloser(bytes.NewReader(contents))); code != 0 {
			t.Errorf("%s: code %d, %s", name, code, text)
		}
		only(t, dir, "f", contents)
	}
}

// TestReceiveFromChangedSource: a file that changes during the transfer does not get its name.
func TestReceiveFromChangedSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := describe(t, []byte("before"), filepath.Join(dir, "f"))
	for _, text := range []string{"after!", "longer than before", "short"} {
		if err := os.WriteFile(spec.Source.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, message := receive(t, spec, &unread{t: t}); code != 1 || message != "the received file is damaged\n" {
			t.Errorf("%s: code %d, %s", text, code, message)
		}
		only(t, dir, "f", nil)
	}
}

// meeting is the input of one of several nodes that write the same file. The first that reads
// waits until the others have closed theirs.
type meeting struct {
	io.Reader
	first  *sync.Once
	others *sync.WaitGroup
	closed sync.Once
	reads  *int
}

func (m *meeting) Read(b []byte) (int, error) {
	m.first.Do(func() {
		*m.reads++
		m.others.Wait()
	})
	return m.Reader.Read(b)
}

func (m *meeting) Close() error {
	m.closed.Do(m.others.Done)
	return nil
}

// receiveTogether receives a file on four nodes that have the same directory. It returns the exit
// codes, and the number of nodes that read their input.
func receiveTogether(t *testing.T, spec *step.FileSpec, input []byte) (codes []int, reads int) {
	t.Helper()
	const nodes = 4
	var first sync.Once
	var others, all sync.WaitGroup
	others.Add(nodes - 1)
	codes = make([]int, nodes)
	for i := range codes {
		in := &meeting{Reader: bytes.NewReader(input), first: &first, others: &others, reads: &reads}
		all.Go(func() { codes[i], _ = receive(t, spec, in) })
	}
	all.Wait()
	return codes, reads
}

// TestReceiveTogether: of the nodes of one machine that replace the same file, one reads its input
// and writes. If that fails, it fails on all, and nothing remains.
func TestReceiveTogether(t *testing.T) {
	t.Parallel()
	contents := bytes.Repeat([]byte("all work and no play\n"), 50_000)
	for _, damaged := range []bool{false, true} {
		dir := t.TempDir()
		spec := describe(t, contents, filepath.Join(dir, "f"))
		spec.Source, spec.Force, spec.Token = nil, true, "together"
		input, want := contents, 0
		if damaged {
			input, want = bytes.ToUpper(contents), 1
		}
		codes, reads := receiveTogether(t, spec, input)
		for i, code := range codes {
			if code != want {
				t.Errorf("damaged %t: node %d: code %d", damaged, i, code)
			}
		}
		if reads != 1 {
			t.Errorf("damaged %t: %d nodes read their input", damaged, reads)
		}
		if damaged {
			contents = nil
		}
		only(t, dir, "f", contents)
	}
}

// TestReceiveIgnoresForeignLock: a lock that is not a file of its own does not keep a node from
// writing.
func TestReceiveIgnoresForeignLock(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "x")
	spec := describe(t, []byte("new"), filepath.Join(dir, "f"))
	spec.Force, spec.Token = true, "foreign"
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, plant := range []func(string, string) error{os.Link, os.Symlink} {
		lock := bcast.LockPath(spec)
		if err := plant(other, lock); err != nil {
			t.Fatal(err)
		}
		if code, text := receive(t, spec, &unread{t: t}); code != 0 {
			t.Errorf("code %d, %s", code, text)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		only(t, dir, "f", []byte("new"))
	}
	if got, err := os.ReadFile(other); err != nil || string(got) != "x" {
		t.Errorf("the other file is %q, %v", got, err)
	}
}
