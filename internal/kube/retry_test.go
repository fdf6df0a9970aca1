package kube

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// A request for which the server is too busy is sent again with its body. One that
// admission refuses for now is not.
func TestRetryWhenBusy(t *testing.T) {
	requests := 0
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if requests++; err != nil || r.Method == http.MethodPost && string(body) != `"what"` {
				t.Errorf("request %d has %q, %v", requests, body, err)
			}
			if requests < 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprintf(w, `{"kind":"Status","code":429,"message":%q}`, text)
				return
			}
			fmt.Fprint(w, `{}`)
		}
	}
	c := connected(t, "{token: x}", answer("there are too many requests"))
	for _, send := range []func() error{
		func() error { return c.Get(t.Context(), "/x", nil, nil) },
		func() error { return c.Post(t.Context(), "/x", nil, "what", nil) },
		func() error { return c.Stream(t.Context(), "/x", nil, func([]byte) error { return nil }) },
	} {
		requests = 0
		if err := send(); err != nil || requests != 3 {
			t.Errorf("%v after %d requests", err, requests)
		}
	}
	requests = 0
	c = connected(
		t,
		"{token: x}",
		answer(`admission webhook "jobs" denied the request: Resource temporarily unavailable`),
	)
	if err := c.Post(t.Context(), "/x", nil, "what", nil); KindOf(err) != Busy || requests != 1 {
		t.Errorf("%v after %d requests", err, requests)
	}
}
