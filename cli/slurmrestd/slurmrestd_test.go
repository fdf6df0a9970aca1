package slurmrestd

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/stdio"
)

// TestBadInput: what is wrong is said before a cluster is looked for. The messages about
// plugins and the first one about threads are those of slurmrestd 22.05.8.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		args, variable string // SLURMRESTD_AUTH_TYPES
		want           string // a part of the error
	}{
		{"-a nope", "", "Unable to find plugin: rest_auth/nope"},
		{"-a rest_auth/nope", "", "Unable to find plugin: rest_auth/nope"},
		{"", "munge", "Unable to find plugin: rest_auth/munge"},
		{"-s nope", "", "Unable to find plugin: openapi/nope"},
		{"-t x", "", "Request at least 2 threads for processing"},
		{"-t 1", "", "Request at least 2 threads for processing"},
		{"-t 100000", "", "at most 1024"},
		{"-u root :0", "", "-u is not possible here"},
		{"-x", "", "invalid option -- 'x'"},
		{"-a local -s v0.0.38 :0", "", "no cluster"},
	} {
		p := stdio.System()
		var out, errs bytes.Buffer
		p.In, p.Out, p.Err = strings.NewReader(""), &out, &errs
		p.LookupEnv = func(name string) (string, bool) {
			return tt.variable, name == "SLURMRESTD_AUTH_TYPES" && tt.variable != ""
		}
		p.ReadFile = func(string) ([]byte, error) { return nil, os.ErrNotExist }
		err := New(p).Run(t.Context(), strings.Fields(tt.args))
		if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
			t.Errorf("%q: %v, %s; want %s", tt.args, err, out.String(), tt.want)
		}
	}
}

// TestSocketsAreReplaced: the socket of a process that has ended is replaced; one in use and
// another file are not.
func TestSocketsAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a socket in use: %v", err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	again, err := listen("unix:" + path)
	if err != nil {
		t.Fatalf("a socket that was left: %v", err)
	}
	again.Close()
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:" + path); err == nil {
		t.Error("a file was replaced")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "data" {
		t.Errorf("the file is %q, %v", data, err)
	}
}
