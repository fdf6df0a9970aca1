// Package jobsets runs the controllers and webhooks of JobSet in this process, for
// clusters that have no JobSet deployment. The code is upstream's.
package jobsets

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"

	"github.com/berth-hpc/berth/internal/httpserver"
)

// workers is the number of JobSets, and of pods, that are reconciled at a time.
const workers = 10

// Run runs JobSet's controllers and webhooks until ctx ends, and then returns nil.
// kube is a client configuration with the rights of a JobSet deployment. The JobSet
// CRD must be established.
func Run(ctx context.Context, kube *rest.Config, hooks *Hooks) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), jobset.AddToScheme(scheme)); err != nil {
		return err
	}
	rc := rest.CopyConfig(kube)
	rc.UserAgent = "jobset"
	skipNames := true // a second control plane in this process has controllers of the same names
	mgr, err := ctrl.NewManager(rc, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: hooks,
		Controller:    config.Controller{SkipNameValidation: &skipNames, MaxConcurrentReconciles: workers},
	})
	if err != nil {
		return fmt.Errorf("jobset: %w", err)
	}
	if err := setup(ctx, mgr); err != nil {
		return fmt.Errorf("jobset: %w", err)
	}
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("jobset: %w", err)
	}
	return nil
}

func setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	js := controllers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("jobset"))
	if err := js.SetupWithManager(mgr); err != nil {
		return err
	}
	pods := controllers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("pod"))
	if err := pods.SetupWithManager(mgr); err != nil {
		return err
	}
	return webhooks.Setup(mgr)
}

// Hooks is a webhook server for controller-runtime on an open listener, so that no
// other process can bind its port before it starts.
type Hooks struct {
	listener net.Listener
	cert     func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	mux      *http.ServeMux
	started  chan struct{}
}

// NewHooks returns a server on l, which it closes when it ends. cert returns its certificate
// for each connection, as tls.Config.GetCertificate.
func NewHooks(l net.Listener, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *Hooks {
	return &Hooks{listener: l, cert: cert, mux: http.NewServeMux(), started: make(chan struct{})}
}

// Started returns a channel that is closed when the hooks are served.
func (h *Hooks) Started() <-chan struct{} { return h.started }

// NeedLeaderElection returns false: hooks are served without leadership.
func (h *Hooks) NeedLeaderElection() bool { return false }

// Register adds a hook at a path.
func (h *Hooks) Register(path string, hook http.Handler) { h.mux.Handle(path, hook) }

// WebhookMux returns the mux of the registered hooks.
func (h *Hooks) WebhookMux() *http.ServeMux { return h.mux }

// StartedChecker returns a check that fails until hooks are served.
func (h *Hooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-h.started:
			return nil
		default:
			return errors.New("the webhook server has not started")
		}
	}
}

// Start serves until ctx ends.
func (h *Hooks) Start(ctx context.Context) error {
	s := &http.Server{
		Handler:   h.mux,
		TLSConfig: &tls.Config{GetCertificate: h.cert, MinVersion: tls.VersionTLS12},
	}
	httpserver.SetLimits(s)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	close(h.started)
	if err := s.ServeTLS(h.listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
