package options

import "testing"

func TestComplete(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	for _, c := range []struct {
		o     Options
		euid  int
		env   map[string]string
		state string // empty: an error is expected
	}{
		{Options{}, 0, nil, "/var/lib/berth"},
		{Options{}, 1, map[string]string{"HOME": "/home/u"}, "/home/u/.local/state/berth"},
		{Options{}, 1, map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "/s"}, "/s/berth"},
		{Options{}, 1, map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "relative"}, "/home/u/.local/state/berth"},
		{Options{}, 1, nil, ""},
		{Options{StateDir: "x/../y"}, 1, nil, "/here/y"},
		{Options{StateDir: "/"}, 0, nil, ""},
		{Options{Users: []string{"a"}}, 1, map[string]string{"HOME": "/home/u"}, ""},
		{Options{Users: []string{"a"}}, 0, nil, "/var/lib/berth"},
		{Options{Directory: "d"}, 1, map[string]string{"HOME": "/home/u"}, ""},
		{Options{Directory: "d"}, 0, nil, "/var/lib/berth"},
		{Options{Directory: "d"}, 1, map[string]string{"HOME": "/home/u"}, ""},
		{Options{Directory: "d"}, 0, nil, "/var/lib/berth"},
		{Options{GPUs: -1}, 0, nil, ""},
		{Options{APIPort: 65536}, 0, nil, ""},
		{Options{EtcdServers: []string{"http://127.0.0.1:2379"}}, 0, nil, ""},
		{Options{EtcdServers: []string{"unix:///run/etcd.sock"}, Fresh: true}, 0, nil, ""},
		{Options{EtcdServers: []string{"unix:///run/etcd.sock"}}, 0, nil, "/var/lib/berth"},
	} {
		err := c.o.Complete(c.euid, env(c.env), "/here", "/opt/bin/berth-local")
		if (err != nil) != (c.state == "") || err == nil && c.o.StateDir != c.state {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && c.o.BinDir != "/opt/bin" {
			t.Errorf("bin: %s", c.o.BinDir)
		}
	}
}

// The path of accounting's database is relative to the current directory, with the scheme
// sqlite: too.
func TestPathOfAccountingStorage(t *testing.T) {
	for storage, want := range map[string]string{
		"": "", "acct.db": "/here/acct.db", "../acct.db": "/acct.db", "/var/acct.db": "/var/acct.db",
		"sqlite:acct.db": "sqlite:/here/acct.db", "sqlite:/var/acct.db": "sqlite:/var/acct.db",
		"postgres://db/acct": "postgres://db/acct",
	} {
		o := Options{AccountingStorage: storage}
		if err := o.Complete(0, func(string) string { return "" }, "/here", "/opt/bin/berth-local"); err != nil {
			t.Fatal(err)
		}
		if o.AccountingStorage != want {
			t.Errorf("%q: %q, want %q", storage, o.AccountingStorage, want)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "4000": 4000, "4000M": 4000, "8G": 8192, "8g": 8192, "1T": 1 << 20, "1025K": 2,
		"0": -1, "-1": -1, "G": -1, "1X": -1, "9999999999999999999": -1,
	} {
		got, err := ParseMemory(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
