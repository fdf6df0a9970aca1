package app

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/usage"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/sched/clusterview"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/query"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// userResolver resolves the users of the cluster.
type userResolver struct{ *directory.Directory }

func (p userResolver) UserID(name string) (int64, bool) {
	if u := p.User(name); u != nil {
		return u.Spec.UID, true
	}
	return 0, name == "root"
}

// newRecorder returns the recorder, which calls stored for each finished job whose record is
// stored. Call it before the stores are filled.
func newRecorder(cfg Config, c *control.Cluster, stored func(jobID int64)) *acct.Recorder {
	dir := directory.New(c, nil)
	return acct.NewRecorder(acct.Config{
		Address: cfg.Accounting.Storage, Retention: cfg.Accounting.Retention, ArchiveDir: cfg.Accounting.Archive,
		Cluster: c, Users: userResolver{dir}, Released: stored, Now: time.Now, Log: cfg.Log,
		Row:       func(b *v1alpha1.BatchJob) status.Job { return table.RowOf(b, dir) },
		Billing:   func(b *v1alpha1.BatchJob, p *v1alpha1.PastAttempt) int64 { return table.BillingOf(b, p, dir) },
		NodeNames: nodeinfo.ShortNames,
		NodeEvent: func(n *corev1.Node) status.AcctEvent {
			e := clusterview.NodeEvent(n)
			if e.User != "" {
				e.UserID, _ = userResolver{dir}.UserID(e.User)
			}
			return e
		},
	})
}

// usageOf returns the past usage in accounting, for the planner.
func usageOf(rec *acct.Recorder) query.UsageSource {
	return func(
		now time.Time, halfLife time.Duration, since time.Time,
		factor func(qos string) float64, noDecay func(qos string) bool,
	) snapshot.Usage {
		used, byQOS := rec.Usage().Used(
			&usage.Query{Now: now, HalfLife: halfLife, Since: since, Factor: factor, NoDecay: noDecay})
		return snapshot.Usage{Associations: used, QOS: byQOS}
	}
}
