// Package slurmrestd serves Slurm's REST API to local and remote programs. It has no
// rights of its own: each request is made with the caller's credential.
package slurmrestd

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/httpserver"
	"github.com/berth-hpc/berth/internal/rest"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// The types of authentication (slurmrestd(8)).
const (
	authLocal = "rest_auth/local"
	authJWT   = "rest_auth/jwt"
)

const (
	defaultThreads = 20
	maxThreads     = 1024
	// drain is how long requests may take to end after a signal.
	drain = 10 * time.Second
)

// Options are the dependencies and the options of slurmrestd.
type Options struct {
	p *stdio.Process

	config             string
	local, jwt         bool
	plugins, addresses []string
	threads            int
	verbose            bool
}

// New returns the command.
func New(p *stdio.Process) *Options { return &Options{p: p} }

// Run parses args and serves until SIGINT or SIGTERM.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Slurmrestd.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	switch {
	case v.Get("auth") == "list":
		return o.p.Print("slurmrestd: Possible REST authentication plugins:\n" +
			"slurmrestd: " + authLocal + "\nslurmrestd: " + authJWT + "\n")
	case v.Get("plugins") == "list":
		return o.p.Print("slurmrestd: Possible OpenAPI plugins:\nslurmrestd: " +
			strings.Join(rest.Plugins(), "\nslurmrestd: ") + "\n")
	}
	if err := o.set(v, words); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.serve(ctx)
}

func (o *Options) set(v *option.Values, words []string) error {
	o.config, o.verbose, o.threads = v.Get("config"), v.Has("verbose"), defaultThreads
	if v.Has("threads") {
		n, err := strconv.Atoi(v.Get("threads"))
		if err != nil || n < 2 || n > maxThreads {
			return slurmerr.Newf(slurmerr.Fatal, "Request at least 2 threads for processing, and at most %d",
				maxThreads)
		}
		o.threads = n
	}
	types := v.List("auth")
	for _, t := range types {
		if t != authLocal && t != authJWT && t != "local" && t != "jwt" {
			return unknownPlugin("rest_auth/", t)
		}
	}
	has := func(t string) bool {
		return len(types) == 0 || slices.Contains(types, t) || slices.Contains(types, "rest_auth/"+t)
	}
	o.local, o.jwt = has("local"), has("jwt")
	for _, name := range v.List("plugins") {
		if !slices.Contains(rest.Plugins(), name) && !slices.Contains(rest.Plugins(), "openapi/"+name) {
			return unknownPlugin("openapi/", name)
		}
		o.plugins = append(o.plugins, "openapi/"+strings.TrimPrefix(name, "openapi/"))
	}
	o.addresses = words
	if len(words) == 0 {
		o.addresses = strings.FieldsFunc(o.p.Env("SLURMRESTD_LISTEN"), func(r rune) bool { return r == ',' })
	}
	return nil
}

// unknownPlugin is the error about a plugin that does not exist. The prefix is that of all of
// its kind, which callers may omit.
func unknownPlugin(prefix, name string) error {
	return slurmerr.Newf(slurmerr.Fatal, "Unable to find plugin: %s", prefix+strings.TrimPrefix(name, prefix))
}

// serve listens at the addresses, or serves standard input and output if there are none.
func (o *Options) serve(ctx context.Context) error {
	c, err := rest.Connect(o.p, o.config)
	if err != nil {
		return err
	}
	api := rest.New(
		rest.Options{Cluster: c, JWT: o.jwt, Plugins: o.plugins, Threads: o.threads, Now: o.p.Now, Log: o.log},
	)
	if len(o.addresses) == 0 {
		return serveStream(api.Handler(o.local), o.p.In, o.p.Out)
	}
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // also closed by the server
		}
	}()
	for _, a := range o.addresses {
		l, err := listen(a)
		if err != nil {
			return slurmerr.Wrap(slurmerr.Fatal, err, "Unable to listen on "+a+": "+err.Error())
		}
		listeners = append(listeners, l)
	}
	done := make(chan error, len(listeners))
	var servers []*http.Server
	for _, l := range listeners {
		s := &http.Server{Handler: o.handler(api), ConnContext: withPeer}
		httpserver.SetLimits(s)
		servers = append(servers, s)
		go func() { done <- s.Serve(l) }()
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		err = nil
	}
	ending, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	for _, s := range servers {
		_ = s.Shutdown(ending) // what is not done by then is cut off
	}
	return err
}

// handler serves the requests of this user's processes with this process's own credential,
// if rest_auth/local is allowed, and all others with that of the request.
func (o *Options) handler(api *rest.API) http.Handler {
	own, others := api.Handler(o.local), api.Handler(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if same, _ := r.Context().Value(samePeer{}).(bool); same {
			own.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// log writes a line about a request.
func (o *Options) log(line string) {
	if o.verbose {
		o.p.Warn("slurmrestd: " + line)
	}
}
