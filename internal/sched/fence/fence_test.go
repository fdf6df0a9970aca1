package fence

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A process without the lease reads, and does not write.
func TestFence(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method)
	}))
	defer server.Close()
	holds := true
	f := &Transport{http.DefaultTransport, func() bool { return holds }}
	send := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.RoundTrip(r)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body) // there is none
		return resp.Body.Close()
	}
	for _, method := range []string{http.MethodPatch, http.MethodGet} {
		if err := send(method); err != nil {
			t.Errorf("%s with the lease: %v", method, err)
		}
	}
	holds = false
	for _, method := range []string{http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if err := send(method); !errors.Is(err, ErrLeaseExpired) {
			t.Errorf("%s without the lease: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("GET without the lease: %v", err)
	}
	if got := strings.Join(seen, " "); got != "PATCH GET GET" {
		t.Errorf("the server got %s", got)
	}
}
