package agentapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// scriptTime is the default time limit of a site's prolog or epilog, in seconds.
const scriptTime = 300

// site returns what the site runs around jobs; nil: nothing.
func site(p *v1alpha1.ClusterSpec) *wire.Site {
	c := &p.SiteScripts
	w := &wire.Site{
		Prolog: c.Prolog, Epilog: c.Epilog, TaskProlog: c.TaskProlog, TaskEpilog: c.TaskEpilog,
		SrunProlog: c.SrunProlog, SrunEpilog: c.SrunEpilog,
	}
	if *w == (wire.Site{}) {
		return nil
	}
	w.Timeout = cmp.Or(c.PrologEpilogTimeout, scriptTime)
	return w
}

// scriptFailed handles the failure of the site's prolog or epilog on an agent's
// node. After a prolog the job goes back to the queue, held; a job that may not be
// requeued, or that a client waits for, has failed. The node is drained where the
// site trusts its users with that.
func (s *Server) scriptFailed(ctx context.Context, a *agent, r *wire.Report) error {
	reason := "Epilog error"
	if r.Kind == wire.ReportProlog {
		reason = "Prolog error"
		if err := s.putBack(ctx, a, r); err != nil {
			return err
		}
	}
	p := s.Cluster.Parameters()
	if !p.DrainOnScriptError || a.job.Status.Allocation == nil {
		return nil
	}
	n := a.job.Status.Allocation.Nodes[a.Index]
	node := &corev1.Node{}
	if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Name: cmp.Or(n.Node, n.Name)}, node); err != nil {
		return fmt.Errorf("node of the agent: %w", err)
	}
	if node.Annotations[wire.AnnotationState] != "" {
		return nil // it is drained, or down
	}
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[wire.AnnotationState] = "drain"
	node.Annotations[wire.AnnotationReason] = fmt.Sprintf("%s [root@%s]", reason,
		s.Now().UTC().Format("2006-01-02T15:04:05"))
	node.Spec.Unschedulable = true
	if err := s.Cluster.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("drain the node of the agent: %w", err)
	}
	return nil
}

func (s *Server) putBack(ctx context.Context, a *agent, r *wire.Report) error {
	b := a.job
	if !started(b) {
		return &failure{http.StatusConflict, "the job has not been started"}
	}
	if b.Spec.Job.Batch.Client != "" || !s.requeueable(b) {
		end := wire.Report{
			JobID: a.JobID, Attempt: a.Attempt, Kind: wire.ReportFailed, Status: 1,
			Message: "Job prolog failed: " + r.Message,
		}
		return s.Keeper.Report(ctx, a.JobID, a.Attempt, end)
	}
	live, err := s.reread(ctx, b)
	switch {
	case err != nil:
		return err
	case live == nil:
		return errOver
	}
	if live.RequeueRequested() {
		return nil // another node's did fail, too
	}
	after := live.DeepCopy()
	after.Spec.Requeues++
	after.Spec.Job.Hold = job.HoldLaunch
	if err := s.Cluster.Client.Patch(ctx, after, client.MergeFromWithOptions(live,
		client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("put job %d back: %w", a.JobID, err)
	}
	return nil
}

// requeueable reports whether the job may be requeued: by --requeue or
// --no-requeue, else by JobRequeue.
func (s *Server) requeueable(b *v1alpha1.BatchJob) bool {
	if r := b.Spec.Job.Batch.Requeue; r != nil {
		return *r
	}
	def := s.Cluster.Parameters().JobRequeue
	return def == nil || *def
}
