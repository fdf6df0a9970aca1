package processnode

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
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

// serve serves the kubelet API on l; the returned function stops it.
func (m *manager) serve(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /pods", m.servePods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", m.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", m.serveExec)
	mux.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", m.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", m.serveAttach)
	mux.HandleFunc("/attach/{namespace}/{pod}/{uid}/{container}", m.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", m.servePortForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", m.servePortForward)
	server := &http.Server{
		Handler: m.authenticated(mux),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{m.cfg.ServingCert},
			ClientCAs:    m.cfg.ClientCA,
			ClientAuth:   tls.RequireAndVerifyClientCert,
			MinVersion:   tls.VersionTLS12,
			// Streams are upgraded connections, which HTTP/2 does not support.
			NextProtos: []string{"http/1.1"},
		},
		ErrorLog: discardLog,
	}
	httpserver.SetLimits(server)
	m.wait.Go(func() { _ = server.Serve(tls.NewListener(l, server.TLSConfig)) })
	return func() { _ = server.Close() }
}

// authenticated allows only the API server and administrators: users of the cluster
// have certificates of the same CA.
func (m *manager) authenticated(next http.Handler) http.Handler {
	name := m.cfg.KubeletClient
	if name == "" {
		name = KubeletClientName
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		if subject.CommonName != name && !slices.Contains(subject.Organization, "system:masters") {
			http.Error(w, "Forbidden", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (m *manager) servePods(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	pods := m.snapshot()
	m.mu.Unlock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range pods {
		pod := *p.spec.DeepCopy()
		pod.Status = *p.status(p.over.Load())
		list.Items = append(list.Items, pod)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// target returns the container that a request names. If there is none, it responds with an
// error and returns nil.
func (m *manager) target(w http.ResponseWriter, r *http.Request) *container {
	p := m.find(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
		http.Error(w, "pod "+r.PathValue("namespace")+"/"+r.PathValue("pod")+" is not on this node",
			http.StatusNotFound)
		return nil
	}
	name := r.PathValue("container")
	for _, c := range slices.Concat(p.inits, p.containers) {
		if c.spec.Name == name {
			return c
		}
	}
	http.Error(w, "container "+name+" not found in pod "+p.spec.Name, http.StatusNotFound)
	return nil
}

func (m *manager) serveLogs(w http.ResponseWriter, r *http.Request) {
	c := m.target(w, r)
	if c == nil {
		return
	}
	query := r.URL.Query()
	log, err := c.logOf(query.Get("previous") == "true")
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
	_ = log.Copy(r.Context(), o, stdout, stderr)
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

func (m *manager) serveExec(w http.ResponseWriter, r *http.Request) {
	c := m.target(w, r)
	if c == nil {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, c, c.p.spec.Name, string(c.p.spec.UID), c.spec.Name, r.URL.Query()["command"],
		options,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (m *manager) serveAttach(w http.ResponseWriter, r *http.Request) {
	c := m.target(w, r)
	if c == nil {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, c, c.p.spec.Name, string(c.p.spec.UID), c.spec.Name, options,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (m *manager) servePortForward(w http.ResponseWriter, r *http.Request) {
	p := m.find(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
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
	portforward.ServePortForward(w, r, p, p.spec.Name, string(p.spec.UID), options,
		streamIdle, streamCreation, portforward.SupportedProtocols)
}
