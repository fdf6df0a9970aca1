package app

import (
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/tracing"
)

// observer measures what happens to jobs: in histograms, whose exemplars name jobs and their
// traces, and in the traces themselves.
type observer struct {
	tracer          *tracing.Tracer // nil: jobs are not traced
	admission       prometheus.Histogram
	waited, started *prometheus.HistogramVec
	unrecorded      bool // there is no accounting, so that no record is stored
}

// newObserver returns an observer for a leader. Where jobs are traced, log lines of cfg.Log
// with the id of a traced job have that of the trace too.
func newObserver(cfg *Config, c *control.Cluster) (*observer, error) {
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: "berth_" + name, Help: help, Buckets: buckets}
	}
	o := &observer{
		unrecorded: cfg.Accounting.Storage == "",
		admission: prometheus.NewHistogram(histogram("admission_seconds", "How long the admission of jobs takes.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10})),
		waited: prometheus.NewHistogramVec(histogram("job_wait_seconds",
			"How long jobs waited from when they were eligible to their start.",
			[]float64{.1, 1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}),
			[]string{"partition"}),
		started: prometheus.NewHistogramVec(histogram("job_start_seconds",
			"How long jobs took from their allocation until every node was ready.",
			[]float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}), []string{"partition"}),
	}
	if cfg.Tracing.Endpoint == "" {
		return o, nil
	}
	var err error
	o.tracer, err = tracing.New(tracing.Config{
		Endpoint: cfg.Tracing.Endpoint, Sample: cfg.Tracing.Sample, Instance: cfg.Identity,
		Cluster: func() string { return acct.ClusterName(c.Parameters()) },
		Job:     c.Job, Pods: func(id int64) []*corev1.Pod { return c.JobPods(id) }, Now: time.Now, Log: cfg.Log,
	}, os.LookupEnv)
	cfg.Log = slog.New(tracing.LogHandler(cfg.Log.Handler(), c.Job))
	return o, err
}

// admitted is called for each job that passed admission. It returns the job's traceparent.
func (o *observer) admitted(b *v1alpha1.BatchJob, began time.Time) string {
	traceparent := o.tracer.Admit(b, began)
	observe(o.admission, time.Since(began), b.Spec.JobID, traceparent)
	return traceparent
}

// changed handles a change of a job; it has the form of a store's subscription.
func (o *observer) changed(old, now *v1alpha1.BatchJob) {
	if o.unrecorded && old != nil && now != nil && now.IsFinal() && !old.IsFinal() {
		o.tracer.Stored(now.Spec.JobID)
	}
	if old == nil || now == nil || !runs(now) || runs(old) && old.Status.Attempt == now.Status.Attempt {
		return
	}
	st := &now.Status
	if st.StartTime == nil {
		return
	}
	traceparent := ""
	if t, ok := tracing.Of(now); ok {
		traceparent = t.String()
	}
	if from := queuedSince(now); from != nil {
		observe(o.waited.WithLabelValues(st.Partition), st.StartTime.Sub(*from), now.Spec.JobID, traceparent)
	}
	if h := st.History; len(h) > 1 && h[len(h)-2].State == v1alpha1.StateConfiguring {
		observe(o.started.WithLabelValues(st.Partition), h[len(h)-1].At.Sub(h[len(h)-2].At.Time), now.Spec.JobID,
			traceparent)
	}
}

// expect makes the histograms of a partition exist before its first job starts, so that rates over
// them count that job too.
func (o *observer) expect(partition string) {
	o.waited.WithLabelValues(partition)
	o.started.WithLabelValues(partition)
}

// runs reports whether the job has started and not ended.
func runs(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateRunning || b.Status.State == v1alpha1.StateSuspended
}

// queuedSince returns since when a job that starts was eligible; nil: that is unknown.
func queuedSince(b *v1alpha1.BatchJob) *time.Time {
	st := &b.Status
	switch {
	case len(st.Past) > 0:
		return &st.Past[len(st.Past)-1].End.Time
	case st.EligibleTime != nil:
		return &st.EligibleTime.Time
	case b.Spec.SubmitTime != nil:
		return &b.Spec.SubmitTime.Time
	}
	return nil
}

// observe adds a duration, with the job, and the trace if there is one, as an exemplar.
func observe(h prometheus.Observer, d time.Duration, jobID int64, traceparent string) {
	labels := prometheus.Labels{"job_id": strconv.FormatInt(jobID, 10)}
	if len(traceparent) > 35 {
		labels["trace_id"] = traceparent[3:35]
	}
	e, ok := h.(prometheus.ExemplarObserver)
	if !ok {
		h.Observe(d.Seconds())
		return
	}
	e.ObserveWithExemplar(max(0, d.Seconds()), labels)
}

// spansMetric counts what the collector of traces got.
var spansMetric = desc("trace_spans_total", "Spans that were sent to the collector, or dropped.", "result")

// collect adds the histograms, and the counters of spans where jobs are traced.
func (o *observer) collect(to chan<- prometheus.Metric) {
	o.admission.Collect(to)
	o.waited.Collect(to)
	o.started.Collect(to)
	if o.tracer == nil {
		return
	}
	sent, dropped := o.tracer.Counts()
	to <- prometheus.MustNewConstMetric(spansMetric, prometheus.CounterValue, float64(sent), "sent")
	to <- prometheus.MustNewConstMetric(spansMetric, prometheus.CounterValue, float64(dropped), "dropped")
}
