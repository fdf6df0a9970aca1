package controlplane

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	requestinfo "k8s.io/apiserver/pkg/endpoints/request"
)

// One user's requests for lists of jobs are served one at a time; those of other users and of
// administrators do not wait for them.
func TestFairness(t *testing.T) {
	entered, proceed := make(chan string, 100), make(chan struct{})
	h := newFairness().handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		who, _ := requestinfo.UserFrom(r.Context())
		entered <- who.GetName()
		<-proceed
	}))
	codes := make(chan int, 100)
	list := func(name string, groups ...string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		ctx := requestinfo.WithUser(r.Context(), &user.DefaultInfo{Name: name, Groups: groups})
		ctx = requestinfo.WithRequestInfo(ctx, &requestinfo.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: "berth.hpc", Resource: "batchjobs"})
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(ctx))
			codes <- w.Code
		}()
	}
	const flood = 30
	for range flood {
		list("bob")
	}
	if who := <-entered; who != "bob" {
		t.Fatal(who)
	}
	for range flood - 1 - 16 { // all but the running one and those that may wait
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Errorf("status code %d", code)
		}
	}
	list("alice")
	if who := <-entered; who != "alice" {
		t.Errorf("%s's list is served before alice's", who)
	}
	for range 5 {
		list("root", user.SystemPrivilegedGroup)
		if who := <-entered; who != "root" {
			t.Errorf("%s's list is served before root's", who)
		}
	}
	for _, name := range []string{"system:berth-scheduler", "system:serviceaccount:kube-system:namespace-controller", "system:node:n1"} {
		if limited(&user.DefaultInfo{Name: name}) {
			t.Errorf("%s is limited", name)
		}
	}
	for _, name := range []string{"bob", "system:serviceaccount:user-bob:berth-job"} {
		if !limited(&user.DefaultInfo{Name: name}) {
			t.Errorf("%s is not limited", name)
		}
	}
	close(proceed)
}
