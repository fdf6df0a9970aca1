package cli_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeQueue starts a TLS server that responds with files of the script: the response to
// METHOD .../jobs?QUERY is the file api/METHOD-jobs (or api/METHOD-jobs-all for all states,
// if it exists). The n-th response may have its own file with the suffix -n. A file whose
// first line is a status code is an error. The server logs requests to the file requests.
func fakeQueue(env *testscript.Env) error {
	var mu sync.Mutex
	times := map[string]int{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		log, err := os.OpenFile(filepath.Join(env.WorkDir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			query := r.URL.Query()
			query.Del("fields")
			fmt.Fprintf(log, "%s %s %s %s\n", r.Method, r.URL.Path, query.Encode(), body)
			_ = log.Close()
		}
		name := filepath.Join(env.WorkDir, "api", r.Method+"-"+filepath.Base(r.URL.Path))
		if r.URL.Query().Get("state") == "all" {
			if _, err := os.Stat(name + "-all"); err == nil {
				name += "-all"
			}
		}
		times[name]++
		data, err := os.ReadFile(fmt.Sprintf("%s-%d", name, times[name]))
		if err != nil {
			data, err = os.ReadFile(name)
		}
		if err != nil {
			http.Error(
				w,
				`{"kind":"Status","code":404,"reason":"NotFound","message":"no such file"}`,
				http.StatusNotFound,
			)
			return
		}
		code := 0
		if first, rest, ok := strings.Cut(string(data), "\n"); ok && len(first) == 3 {
			if _, err := fmt.Sscan(first, &code); err == nil {
				w.WriteHeader(code)
				data = []byte(rest)
			}
		}
		_, _ = w.Write(data)
	}))
	env.Defer(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	file := filepath.Join(env.WorkDir, "kubeconfig")
	env.Setenv("KUBECONFIG", file)
	return os.WriteFile(file, fmt.Appendf(nil, `current-context: fake
contexts: [{name: fake, context: {cluster: fake, user: alice, namespace: user-alice}}]
clusters: [{name: fake, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: alice, user: {token: t}}]
`, s.URL, base64.StdEncoding.EncodeToString(ca)), 0o600)
}
