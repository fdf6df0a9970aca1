// Package kubeletapi serves the part of the kubelet's API that the API server uses: logs,
// exec, attach and port-forward, and the list of pods.
package kubeletapi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/berth-hpc/berth/internal/httpserver"
	"github.com/berth-hpc/berth/internal/processnode/logfile"
)

const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// Container is a container of a pod.
type Container interface {
	remotecommand.Executor
	remotecommand.Attacher
	// Log returns the log of the current run, or of the previous one.
	Log(previous bool) (*logfile.Log, error)
}

// Pod is a pod of the nodes.
type Pod interface {
	portforward.PortForwarder
	// Object returns the pod with its current status.
	Object() *corev1.Pod
	// Container returns the container with the name; ok is false if there is none.
	Container(name string) (c Container, ok bool)
}

// Config describes a server. All fields are needed.
type Config struct {
	// Certificate is as tls.Config.GetCertificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCA    *x509.CertPool
	// Client is the common name of the API server's client certificate.
	Client string
	// Pods returns all pods of the nodes.
	Pods func() []Pod
	// Find returns the pod with the name; ok is false if there is none.
	Find func(namespace, name string) (p Pod, ok bool)
}

type server struct{ Config }

// New returns a server of the API, for a TLS listener with its TLSConfig.
func New(c Config) *http.Server {
	s := &server{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /pods", s.servePods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.serveExec)
	mux.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", s.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.serveAttach)
	mux.HandleFunc("/attach/{namespace}/{pod}/{uid}/{container}", s.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.servePortForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", s.servePortForward)
	h := &http.Server{
		Handler: s.authenticated(mux),
		TLSConfig: &tls.Config{
			GetCertificate: c.Certificate,
			ClientCAs:      c.ClientCA,
			ClientAuth:     tls.RequireAndVerifyClientCert,
			MinVersion:     tls.VersionTLS12,
			// Streams are upgraded connections, which HTTP/2 does not support.
			NextProtos: []string{"http/1.1"},
		},
		ErrorLog: discardLog,
	}
	httpserver.SetLimits(h)
	return h
}

// discardLog discards the errors of the HTTP server: broken connections are normal.
var discardLog = log.New(io.Discard, "", 0)

// authenticated allows only the API server and administrators: users of the cluster
// have certificates of the same CA.
func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		if subject.CommonName != s.Client && !slices.Contains(subject.Organization, "system:masters") {
			http.Error(w, "Forbidden", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) servePods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range s.Pods() {
		list.Items = append(list.Items, *p.Object())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// target returns the container that a request names. If there is none, it responds with an
// error and returns nil.
func (s *server) target(w http.ResponseWriter, r *http.Request) Container {
	p, ok := s.Find(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		http.Error(w, "pod "+r.PathValue("namespace")+"/"+r.PathValue("pod")+" is not on this node",
			http.StatusNotFound)
		return nil
	}
	name := r.PathValue("container")
	c, ok := p.Container(name)
	if !ok {
		http.Error(w, "container "+name+" not found in pod "+r.PathValue("pod"), http.StatusNotFound)
		return nil
	}
	return c
}

func (s *server) serveLogs(w http.ResponseWriter, r *http.Request) {
	c := s.target(w, r)
	if c == nil {
		return
	}
	query := r.URL.Query()
	content, err := c.Log(query.Get("previous") == "true")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o := logfile.Options{Tail: -1, Follow: query.Get("follow") == "true", Timestamps: query.Get("timestamps") == "true"}
	if n, err := strconv.Atoi(query.Get("tailLines")); err == nil && n >= 0 {
		o.Tail = n
	}
	if n, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil && n > 0 {
		o.Limit = n
	}
	if n, err := strconv.ParseInt(query.Get("sinceSeconds"), 10, 64); err == nil && n > 0 {
		o.Since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	if t, err := time.Parse(time.RFC3339, query.Get("sinceTime")); err == nil {
		o.Since = t
	}
	w.Header().Set("Content-Type", "text/plain")
	out := &flushing{w: w, c: http.NewResponseController(w)}
	_ = out.c.Flush()
	var stdout, stderr io.Writer = out, out
	switch query.Get("stream") {
	case "Stdout":
		stderr = nil
	case "Stderr":
		stdout = nil
	}
	_ = content.Copy(r.Context(), o, stdout, stderr)
}

// flushing flushes every write immediately, for clients that follow the log.
type flushing struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func (f *flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

func (s *server) serveExec(w http.ResponseWriter, r *http.Request) {
	c, options, ok := s.streamTarget(w, r)
	if !ok {
		return
	}
	remotecommand.ServeExec(w, r, c, r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		r.URL.Query()["command"], options, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (s *server) serveAttach(w http.ResponseWriter, r *http.Request) {
	c, options, ok := s.streamTarget(w, r)
	if !ok {
		return
	}
	remotecommand.ServeAttach(w, r, c, r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		options, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

// streamTarget returns the container that a request names, and the streams that the
// request wants. If either is invalid, it responds with an error, and ok is false.
func (s *server) streamTarget(w http.ResponseWriter, r *http.Request) (
	c Container, options *remotecommand.Options, ok bool,
) {
	if c = s.target(w, r); c == nil {
		return nil, nil, false
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil, false
	}
	return c, options, true
}

func (s *server) servePortForward(w http.ResponseWriter, r *http.Request) {
	p, ok := s.Find(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		http.Error(w, "no such pod on this node", http.StatusNotFound)
		return
	}
	var ports []int32
	for _, v := range r.URL.Query()["port"] {
		if n, err := strconv.ParseUint(v, 10, 16); err == nil {
			ports = append(ports, int32(n))
		}
	}
	options, err := portforward.BuildV4Options(ports)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, p, r.PathValue("pod"), r.PathValue("uid"), options,
		streamIdle, streamCreation, portforward.SupportedProtocols)
}
