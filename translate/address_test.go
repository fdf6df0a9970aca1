package translate

import (
	"errors"
	"testing"
)

func TestAddressOfTheSubmitHost(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"127.0.0.1 localhost\n10.1.2.3\tlogin-0.login.berth.svc login-0 # a pod\n", "10.1.2.3"},
		{"127.0.1.1 login-0\nfd00::7 login-0\n", "fd00::7"},
		{"127.0.1.1 login-0\n", ""},
		{"10.1.2.3 login\nx login-0\n", ""},
	} {
		in := Input{Hostname: "login-0", ReadFile: func(string) ([]byte, error) { return []byte(c.file), nil }}
		if got := in.address(); got != c.want {
			t.Errorf("%q: %q, want %q", c.file, got, c.want)
		}
	}
	missing := Input{Hostname: "login-0", ReadFile: func(string) ([]byte, error) { return nil, errors.New("none") }}
	if got := missing.address(); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
