package command_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/localcluster"
)

// TestDownWithARequestInFlight: a request that waits a minute for a webhook does not delay the end
// of the cluster.
func TestDownWithARequestInFlight(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	up(t, dir, "--scheduler=external", "--nodes=0")
	called := make(chan struct{}, 1)
	done := make(chan struct{})
	hook := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case called <- struct{}{}:
		default: // not the first request
		}
		<-done
	}))
	defer hook.Close()
	defer close(done)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	var hooks []string
	for _, name := range []string{"one", "two"} { // called one after the other
		hooks = append(hooks, fmt.Sprintf(`{"name":"%s.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":30,
			"clientConfig":{"url":%q,"caBundle":%q},"failurePolicy":"Ignore",
			"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}`, name, hook.URL, ca))
	}
	code, body := request(t, dir, "POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
		`{"metadata":{"name":"slow"},"webhooks":[`+strings.Join(hooks, ",")+`]}`)
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	rc, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, localcluster.FileAdmin))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		t.Fatal(err)
	}
	// The server may take a moment to read the configuration; until then it does not call the webhook.
	var requests sync.WaitGroup
	defer requests.Wait()
	for n := 0; len(called) == 0; n++ {
		requests.Go(func() {
			r, err := client.Post(rc.Host+things, "application/json", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":"c%d"}}`, n)))
			if err == nil {
				_ = r.Body.Close()
			}
		})
		time.Sleep(50 * time.Millisecond)
	}
	if code, out := berthLocal(t, "down", "--state-dir", dir); code != 0 || !strings.Contains(out, "ended") {
		log, _ := os.ReadFile(filepath.Join(dir, localcluster.FileLog))
		t.Errorf("down: %d %s\n%s", code, out, log[:min(len(log), 20000)])
	}
}

// TestPanicsAreInTheLog: a panic of the cluster's process is written to the log.
func TestPanicsAreInTheLog(t *testing.T) {
	dir := directory(t)
	up(t, dir, "--scheduler=external", "--nodes=0")
	p, err := localcluster.ReadProcess(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []string{"1", "2"} {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID, fd))
		if err != nil || to != filepath.Join(dir, localcluster.FileLog) {
			t.Errorf("descriptor %s leads to %q, %v", fd, to, err)
		}
	}
}
