package agentapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// flood presents that number of bearer tokens at once.
func (h *fixture) flood(t *testing.T, n int, bearer func(i int) string) (reviews int) {
	t.Helper()
	h.mu.Lock()
	before := h.reviews
	h.mu.Unlock()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 50 {
		wg.Go(func() {
			for i := range next {
				code, text := h.post(t.Context(), wire.PathHello, bearer(i), hello(7, 1, 0), nil)
				if code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
					t.Errorf("bearer %d: %d %s", i, code, text)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reviews - before
}

// Unknown tokens cost the API server no reviews, or few, whatever they look like, and do not
// delay the welcome of an agent.
func TestUnknownBearers(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	h.place(t, 8, "ben", 1, 1)
	name := podName(7, 1, 0)
	forged := func(name string) func(int) string {
		return func(i int) string {
			token := bearer(name)
			signature := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "forged %d", i))
			return token[:strings.LastIndexByte(token, '.')+1] + signature
		}
	}
	for what, c := range map[string]struct {
		bearer func(int) string
		most   int // reviews
	}{
		"random text":            {func(i int) string { return fmt.Sprintf("%030d", i) }, 0},
		"random parts":           {func(i int) string { return fmt.Sprintf("e30.%030d.x", i) }, 0},
		"a long one":             {func(i int) string { return fmt.Sprintf("%020000d", i) }, 0},
		"another account":        {func(i int) string { return fmt.Sprintf("user-anna/%s/uid-%d/default", name, i) }, 0},
		"no pod":                 {func(i int) string { return fmt.Sprintf("user-anna-%d///berth-job", i) }, 0},
		"forged, unknown pods":   {func(i int) string { return forged(fmt.Sprintf("user-anna/%s/uid-%d/berth-job", name, i))(i) }, 8},
		"forged, of a known pod": {forged("user-anna/" + name + "/uid-anna" + name + "/berth-job"), 12},
	} {
		if got := h.flood(t, 1000, c.bearer); got > c.most {
			t.Errorf("%s: %d reviews for 1,000 bearers, want at most %d", what, got, c.most)
		}
	}
	if code, text := h.post(t.Context(), wire.PathHello, token(8, "ben", 1, 0), hello(8, 1, 0), nil); code != http.StatusOK {
		t.Errorf("another pod: %d %s", code, text)
	}
	h.clockMu.Lock()
	h.now = h.now.Add(10 * time.Second)
	h.clockMu.Unlock()
	if code, text := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil); code != http.StatusOK {
		t.Errorf("the pod for which tokens were forged: %d %s", code, text)
	}
}

// An expired token is refused without a review, unless its pod exists: then the clock of this
// process may be wrong, and the API server decides.
func TestExpiredBearer(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	h.clockMu.Lock()
	h.now = time.Unix(1900000000, 0).Add(time.Hour)
	h.clockMu.Unlock()
	code, _ := h.post(t.Context(), wire.PathHello, token(8, "anna", 1, 0), hello(8, 1, 0), nil)
	if h.mu.Lock(); code != http.StatusUnauthorized || h.reviews != 0 {
		t.Errorf("of an unknown pod: %d after %d reviews", code, h.reviews)
	}
	h.mu.Unlock()
	code, text := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil)
	if h.mu.Lock(); code != http.StatusOK || h.reviews != 1 {
		t.Errorf("with a clock that is wrong: %d %s after %d reviews", code, text, h.reviews)
	}
	h.mu.Unlock()
}
