// Package rest serves Slurm's REST API, openapi/v0.0.38 and openapi/dbv0.0.38 as slurmrestd
// of Slurm 22.05 does, and v0.0.40 to v0.0.42 in the form of later releases. It is a client
// of the cluster like the commands: each request is made with the caller's own token, so
// that the cluster decides what the caller may do.
package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/bounds"
)

// maxBody bounds a request's body: the longest script, and as much for the rest.
const maxBody = 2 * bounds.MaxScript

// Options are the dependencies and settings of an API. Cluster and Now are required.
type Options struct {
	Cluster *Cluster
	// JWT accepts tokens in requests.
	JWT bool
	// Plugins are the versions to serve, such as openapi/v0.0.38; empty: all.
	Plugins []string
	// Threads is how many requests are processed at the same time; 0: any number.
	Threads int
	Now     func() time.Time
	// Log is called with a line about each request, which has no control characters; nil:
	// they are discarded.
	Log func(line string)
}

// Cluster is the cluster that requests are about.
type Cluster struct {
	process *stdio.Process
	own     *kube.Client
	shared  *kube.Shared
}

// Connect finds the cluster (see kube.Find) and sends no requests.
func Connect(p *stdio.Process, kubeconfig string) (*Cluster, error) {
	own, err := kube.Connect(p, kubeconfig)
	if err != nil {
		return nil, err
	}
	shared, err := own.Share()
	if err != nil {
		return nil, err
	}
	return &Cluster{process: p, own: own, shared: shared}, nil
}

// client returns a client with the token of a user whose jobs are in the namespace; the
// token "" is the credential of this process.
func (c *Cluster) client(token, namespace string) *jobs.Client {
	if token == "" {
		return jobs.New(c.own)
	}
	return jobs.New(c.shared.Client(token, namespace))
}

// API serves requests. Safe for concurrent use.
type API struct {
	opts     Options
	sessions *sessions
	turns    chan struct{} // nil: any number of requests at the same time

	mu     sync.Mutex
	bodies map[string]int // those that are being received, by user
}

// New returns an API.
func New(o Options) *API {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	a := &API{opts: o, sessions: newSessions(o.Cluster.client, o.Now), bodies: map[string]int{}}
	if o.Threads > 0 {
		a.turns = make(chan struct{}, o.Threads)
	}
	return a
}

// Plugins returns the names of all versions.
func Plugins() []string {
	var all []string
	for _, v := range versions {
		all = append(all, v.plugin)
	}
	return all
}

// version is a version of the API.
type version struct {
	plugin string // openapi/v0.0.38
	title  string // in documents of 22.05
	root   string // of the paths: /slurm/v0.0.38
	parser string // of the later documents; "": the form of 22.05
}

var versions = [...]version{
	{"openapi/v0.0.38", "Slurm OpenAPI v0.0.38", "/slurm/v0.0.38", ""},
	{"openapi/dbv0.0.38", "Slurm OpenAPI DB v0.0.38", "/slurmdb/v0.0.38", ""},
	{"openapi/v0.0.40", "", "/slurm/v0.0.40", "v0.0.40"},
	{"openapi/dbv0.0.40", "", "/slurmdb/v0.0.40", "v0.0.40"},
	{"openapi/v0.0.41", "", "/slurm/v0.0.41", "v0.0.41"},
	{"openapi/dbv0.0.41", "", "/slurmdb/v0.0.41", "v0.0.41"},
	{"openapi/v0.0.42", "", "/slurm/v0.0.42", "v0.0.42"},
	{"openapi/dbv0.0.42", "", "/slurmdb/v0.0.42", "v0.0.42"},
}

// request is a request of an authenticated caller.
type request struct {
	*http.Request
	api     *API
	version *version
	session *session
	body    []byte
	now     time.Time
	local   bool // made with the credential of this process
}

// modern reports whether the document has the form of later releases.
func (r *request) modern() bool { return r.version.parser != "" }

// Handler returns the handler of all paths. local: requests without a token use the
// credential of this process.
func (a *API) Handler(local bool) http.Handler {
	mux := http.NewServeMux()
	known := map[string]bool{}
	for i := range versions {
		v := &versions[i]
		if len(a.opts.Plugins) > 0 && !slices.Contains(a.opts.Plugins, v.plugin) {
			continue
		}
		for _, e := range endpoints() {
			if e.db == strings.HasPrefix(v.root, "/slurmdb/") && (e.since == "" || v.parser >= e.since) {
				mux.Handle(e.method+" "+v.root+e.path, a.serve(v, e.handle, local))
				if other := v.root + e.path; !known[other] && e.path != submitPath {
					known[other] = true
					mux.HandleFunc(other, notAllowed)
				}
			}
		}
	}
	for _, path := range []string{"/openapi", "/openapi.json", "/openapi/v3"} {
		mux.HandleFunc("GET "+path, a.describe)
	}
	mux.HandleFunc("/", unknown)
	return withPlainPaths(mux)
}

// serve returns the handler of an endpoint.
func (a *API) serve(v *version, handle func(*request) ([]byte, error), local bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, api: a, version: v, now: a.opts.Now(), local: local}
		body, err := a.answer(r, local, handle)
		code, kind := http.StatusOK, "application/json"
		if err != nil {
			body, code, kind = r.failure(err)
		}
		a.log(r, code)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = w.Write(body) // the client is gone
	})
}

// host returns the name of this machine, which jobs have as SLURM_SUBMIT_HOST.
func (a *API) host() string {
	name, err := a.opts.Cluster.process.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

func (a *API) log(r *request, code int) {
	user := "-"
	if r.session != nil {
		user = r.session.user
	}
	a.opts.Log(printable.Escape(fmt.Sprintf("%s %s %s: %d", user, r.Method, r.URL.Path, code)))
}

// answer returns the document. It takes a turn for the caller's authentication and one for
// the answer, but none while it receives the body, which the client may send slowly.
func (a *API) answer(r *request, local bool, handle func(*request) ([]byte, error)) ([]byte, error) {
	if err := a.inTurn(r, func() error { return a.authenticate(r, local) }); err != nil {
		return nil, err
	}
	var err error
	if r.body, err = a.receive(r); err != nil {
		return nil, err
	}
	var document []byte
	err = a.inTurn(r, func() (err error) {
		document, err = handle(r)
		return err
	})
	return document, err
}

// inTurn calls do when fewer than Threads requests are processed, or returns an error if the
// client does not wait for that.
func (a *API) inTurn(r *request, do func() error) error {
	if a.turns != nil {
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	return do()
}

// authenticate finds the session of the caller.
func (a *API) authenticate(r *request, local bool) error {
	token, user, ok := credential(r.Header, local, a.opts.JWT)
	if !ok {
		return errNotAuthenticated
	}
	var err error
	if r.session, err = a.sessions.find(r.Context(), token); err != nil {
		return err
	}
	if user != "" && user != r.session.user {
		return errNotAuthenticated
	}
	return nil
}

// maxBodies is how many bodies of one user are received at the same time, so that slow ones
// do not use up the connections and the memory of the others.
const maxBodies = 16

// receive returns the request's body.
func (a *API) receive(r *request) ([]byte, error) {
	if r.Method != http.MethodPost { // no other request has a body that counts
		return nil, nil
	}
	user := r.session.user
	a.mu.Lock()
	full := a.bodies[user] >= maxBodies
	if !full {
		a.bodies[user]++
	}
	a.mu.Unlock()
	if full {
		return nil, &failure{code: http.StatusTooManyRequests, number: errUnspecified,
			message: fmt.Sprintf("%d other requests of this user are being received", maxBodies)}
	}
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.bodies[user]--; a.bodies[user] == 0 {
			delete(a.bodies, user)
		}
	}()
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, invalid(errRejected, "the request has more than %d bytes", maxBody)
	}
	return data, err
}

// unknown answers a request of a path that does not exist.
func unknown(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Unable find requested URL. Please view /openapi/v3 for API reference.", http.StatusNotFound)
}

// notAllowed answers a request of a path that has no such method.
func notAllowed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }

// withPlainPaths removes what Slurm ignores in a path: repeated slashes, and those at the end.
func withPlainPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
		if plain := "/" + strings.Join(parts, "/"); plain != r.URL.Path {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = plain, ""
		}
		next.ServeHTTP(w, r)
	})
}

// ctx returns the context of the request.
func (r *request) ctx() context.Context { return r.Context() }
