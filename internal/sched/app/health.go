package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/berth-hpc/berth/internal/httpserver"
)

// health serves the health and the metrics of this process, from before it leads until
// it ends.
type health struct {
	election  *election // nil: this process needs no lease
	leading   atomic.Pointer[collector]
	answering atomic.Bool // without a lease
}

// lead sets the metrics of this process as the leader; nil: it does not lead any more.
func (h *health) lead(c *collector) { h.leading.Store(c) }

// serve serves on cfg.HealthAddress until stop is called.
func (h *health) serve(ctx context.Context, cfg Config) (stop func(), err error) {
	if cfg.HealthAddress == "" {
		return func() {}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.HealthAddress)
	if err != nil {
		return nil, fmt.Errorf("health: %w", err)
	}
	s := &http.Server{Handler: h.handler()} //nolint:gosec // SetLimits sets its time limits
	httpserver.SetLimits(s)
	go func() { _ = s.Serve(l) }() // ends with Close only
	return func() { _ = s.Close() }, nil
}

func (h *health) handler() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(h)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if text, ok := h.ready(); !ok {
			http.Error(w, text, http.StatusServiceUnavailable)
		} else {
			fmt.Fprint(w, text)
		}
	})
	// Kubernetes' registry has the metrics of kube-scheduler, of the process and of the
	// Go runtime.
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{own, withProcess()}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true}))
	return mux
}

// withProcess returns Kubernetes' registry. Linking kube-scheduler adds the metrics of
// the process to it; otherwise they are added here.
func withProcess() prometheus.Gatherer {
	families, err := legacyregistry.DefaultGatherer.Gather()
	for _, f := range families {
		if f.GetName() == "go_goroutines" {
			return legacyregistry.DefaultGatherer
		}
	}
	if err != nil {
		return legacyregistry.DefaultGatherer
	}
	own := prometheus.NewRegistry()
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return prometheus.Gatherers{legacyregistry.DefaultGatherer, own}
}

// ready reports whether the process serves, or stands by for another leader.
func (h *health) ready() (text string, ok bool) {
	if h.leading.Load() != nil {
		return "leading", true
	}
	if h.election == nil {
		return "the API role alone", h.answering.Load()
	}
	select {
	case <-h.election.leading:
		return "about to lead", false
	default:
	}
	if leader := h.election.elector.GetLeader(); leader != "" {
		return "standing by for " + leader, true
	}
	return "nobody leads yet", false
}

var leadingMetric = prometheus.NewDesc("berth_leading", "1 in the process that leads.", nil, nil)

// Describe implements prometheus.Collector.
func (h *health) Describe(to chan<- *prometheus.Desc) { to <- leadingMetric }

// Collect implements prometheus.Collector.
func (h *health) Collect(to chan<- prometheus.Metric) {
	c := h.leading.Load()
	if c == nil {
		to <- prometheus.MustNewConstMetric(leadingMetric, prometheus.GaugeValue, 0)
		return
	}
	to <- prometheus.MustNewConstMetric(leadingMetric, prometheus.GaugeValue, 1)
	c.collect(to)
}

// whoAmI returns the identity of this connection in the API server.
func whoAmI(ctx context.Context, kube *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return "", err
	}
	var who *authenticationv1.SelfSubjectReview
	err = retryStart(ctx, func(ctx context.Context) (err error) {
		who, err = client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the identity of this process from the API server: %w", err)
	}
	return who.Status.UserInfo.Username, nil
}

// startTimeout is how long the API server may take to answer a process that starts.
const startTimeout = time.Minute

// retryStart repeats f, which sends a request to the API server, until it succeeds or
// startTimeout is over.
func retryStart(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}
