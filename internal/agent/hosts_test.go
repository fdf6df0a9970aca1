package agent

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

func TestHostsFile(t *testing.T) {
	t.Parallel()
	hosts := []wire.Host{
		{Name: "n1", Address: "10.0.0.1:99"},
		{Name: "n2", Address: "[fd00::2]:98"},
		{Name: "bad", Address: "x"},
	}
	want := "127.0.0.1\tlocalhost\n" + hostsBegin + "\n10.0.0.1\tn1\nfd00::2\tn2\n" + hostsEnd + "\n"
	once := hostsFile([]byte("127.0.0.1\tlocalhost\n"), hosts, submitter{})
	if string(once) != want {
		t.Errorf("%q", once)
	}
	if again := hostsFile(once, hosts, submitter{}); string(again) != want {
		t.Errorf("second time %q", again)
	}
	// A pod that is named after its node names it already, as a kubelet does.
	named := "127.0.0.1\tlocalhost\n10.0.0.1\tn1\n127.0.1.1 n2 n2.site # here\n"
	want = "127.0.0.1\tlocalhost\n127.0.1.1\tn2.site\n" + strings.TrimPrefix(want, "127.0.0.1\tlocalhost\n")
	if once := string(hostsFile([]byte(named), hosts, submitter{})); once != want {
		t.Errorf("names that are there: %q, want %q", once, want)
	}
	if empty := string(hostsFile(nil, nil, submitter{})); !strings.HasPrefix(empty, "127.0.0.1\tlocalhost\n") {
		t.Errorf("from nothing %q", empty)
	}
}

// The name of a login pod has no other source in a job.
func TestSubmitHostResolves(t *testing.T) {
	t.Parallel()
	const begin, end = "127.0.0.1\tlocalhost\n" + hostsBegin + "\n10.0.0.1\tn1\n", hostsEnd + "\n"
	hosts := []wire.Host{{Name: "n1", Address: "10.0.0.1:99"}}
	for _, c := range []struct{ name, address, want string }{
		{"login-0", "10.1.2.3", "10.1.2.3\tlogin-0\n"},
		{"login-0", "", ""},
		{"login-0", "x", ""},
		{"login-0\n10.9.9.9\tother", "10.1.2.3", ""},
		{"n1", "10.1.2.3", ""},
		{"localhost", "10.1.2.3", ""},
	} {
		submit := submitHost(&job.Batch{SubmitHost: c.name, SubmitAddress: c.address})
		once := hostsFile([]byte("127.0.0.1\tlocalhost\n"), hosts, submit)
		if string(once) != begin+c.want+end {
			t.Errorf("%q %q: %q", c.name, c.address, once)
		}
		if again := hostsFile(once, hosts, submit); string(again) != string(once) {
			t.Errorf("%q %q: second time %q", c.name, c.address, again)
		}
	}
}

func TestMounted(t *testing.T) {
	t.Parallel()
	const info = "1 2 8:1 / / rw - ext4 /dev/x rw\n" +
		"9 2 8:1 /var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/berth-hosts/hosts /etc/hosts rw - ext4 /dev/x rw\n"
	if !mounted([]byte(info), "/etc/hosts") {
		t.Error("the volume's mount is not seen")
	}
	for _, other := range []string{"", "9 2 8:1 /var/lib/kubelet/pods/u/etc-hosts /etc/hosts rw - ext4 /dev/x rw\n", "9 2\n"} {
		if mounted([]byte(other), "/etc/hosts") {
			t.Errorf("the volume is reported as mounted in %q", other)
		}
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	good := map[string]string{
		wire.EnvJobID:      "7",
		wire.EnvAttempt:    "2",
		wire.EnvNodeOffset: "3",
		wire.EnvPodIndex:   "1",
		wire.EnvPodIP:      "10.0.0.9",
		wire.EnvAPI:        "https://a:1/, https://b:2",
		wire.EnvAPICA:      base64.StdEncoding.EncodeToString(ca),
	}
	environ := func(drop string) (list []string) {
		for k, v := range good {
			if k != drop {
				list = append(list, k+"="+v)
			}
		}
		return list
	}
	c, err := Configure(environ(""))
	if err != nil || c.JobID != 7 || c.Attempt != 2 || c.Index != 4 || len(c.APIs) != 2 || c.APIs[0] != "https://a:1" {
		t.Errorf("%+v, %v", c, err)
	}
	for name := range good {
		if _, err := Configure(environ(name)); err == nil {
			t.Errorf("accepted without %s", name)
		}
	}
	listed := append(environ(wire.EnvNodeOffset), wire.EnvNodes+"=0,3-5")
	if c, err := Configure(listed); err != nil || c.Index != 3 {
		t.Errorf("%+v, %v, want the second of the list", c, err)
	}
	if _, err := Configure(append(environ(wire.EnvNodeOffset), wire.EnvNodes+"=7")); err == nil {
		t.Error("accepted a list without its node")
	}
}
