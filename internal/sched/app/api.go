package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/server"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/httpserver"
	"github.com/berth-hpc/berth/internal/queue"
	"github.com/berth-hpc/berth/internal/queue/attach"
	"github.com/berth-hpc/berth/internal/queue/bulkcancel"
	"github.com/berth-hpc/berth/internal/queue/replica"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/sched/keeper"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/wire"
)

// api is the API role: admission, queue API and the agents' server.
type api struct {
	queue  *queue.Server
	agents *agentapi.Server
}

func newAPI(
	cfg Config, e *endpoint, c *control.Cluster, p *planner.Planner, k *keeper.Keeper, rec *acct.Recorder,
	pool *agentapi.Pool, many *bulkcancel.Canceller, seen *observer,
) (*api, error) {
	var q *queue.Server
	steps := func(jobID int64, attempt int32, list []wire.StepRecord) {
		rec.RecordSteps(jobID, attempt, list)
		q.RecordSteps(jobID, attempt, list)
		seen.tracer.Steps(jobID, attempt, list)
	}
	agents := agentapi.New(agentapi.Options{
		Cluster: c, Keeper: k, KubeURL: cfg.KubeURL, Log: cfg.Log, Pool: pool, Steps: steps, Leads: cfg.leads,
		PodPerJob: k.AlignsCPUs, Joined: seen.tracer.Joined, Traceparent: seen.tracer.Running,
		Gone: func(err error) bool { return errors.Is(err, keeper.ErrNotCurrent) },
	})
	var err error
	q, err = queue.New(queue.Options{Cluster: c, Planner: p, Checker: p, Forecast: p, Pool: p, Agents: agents,
		OnlyAPIServer: cfg.OnlyAPIServer, Log: cfg.Log, Trace: seen.admitted,
		Peer: e.peer, Unstored: rec.Backlog, Highest: rec.HighestJobID, BulkCanceller: many, WebhookSecret: e.secret,
		Trusted: []string{cfg.self}})
	if err != nil {
		return nil, err
	}
	(&server.Server{Cluster: c, Recorder: rec, Now: time.Now}).Register(q)
	q.HandlePlain("GET "+replica.Path, &replica.Feed{
		Cluster: c, Plan: p.Newest, Peer: e.onlyPeers,
		Settled: func(ctx context.Context) { q.Table().Await(ctx, table.Query{}) },
	})
	return &api{q, agents}, nil
}

// Send sends a command to the agent of the batch host.
func (a *api) Send(jobID int64, attempt int32, c wire.Command) { a.agents.Send(jobID, attempt, c) }

// closeTimeout limits the time of the last writes of a leader that is asked to stop.
const closeTimeout = 2 * time.Second

// serve answers requests until ctx ends.
func (a *api) serve(ctx context.Context, e *endpoint) error {
	err := serve(ctx, e, a.queue)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, a.queue.Close(last))
}

// serve serves h at e until ctx ends.
func serve(ctx context.Context, e *endpoint, h http.Handler) error {
	s := &http.Server{
		Handler: h,
		// Errors of clients' connections are not worth a line in the log.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		TLSConfig: &tls.Config{
			GetCertificate: e.certificate.Server,
			MinVersion:     tls.VersionTLS12,
			// The queue API identifies the API server by its client certificate. It
			// verifies the certificate itself, because its CA may change.
			ClientAuth: tls.RequestClientCert,
		},
	}
	attach.TrackConnections(s)
	httpserver.SetLimits(s)
	go func() {
		<-ctx.Done()
		_ = s.Close()
	}()
	return s.ServeTLS(e, "", "")
}

// lead makes the API role serve as that of the leader. The stores are filled.
func (a *api) lead(ctx context.Context) error { return a.queue.Lead(ctx) }
