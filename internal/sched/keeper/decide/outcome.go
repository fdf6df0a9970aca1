package decide

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

const reportFailed = wire.ReportFailed

// FromReport returns the outcome that the batch host's agent reports.
func FromReport(r wire.Report) Outcome {
	o := Outcome{
		Final:   v1alpha1.StateCompleted,
		Message: r.Message,
		Exit:    &v1alpha1.ExitCode{Status: r.Status, Signal: r.Signal},
		Derived: &v1alpha1.ExitCode{Status: r.Derived, Signal: r.DerivedSignal},
	}
	switch {
	case r.OutOfMemory:
		o.Final, o.Reason = v1alpha1.StateOutOfMemory, status.ReasonOutOfMemory
		o.Exit = &v1alpha1.ExitCode{Signal: outOfMemorySignal}
	case r.Kind == wire.ReportFailed:
		o.Final, o.Reason = v1alpha1.StateFailed, status.ReasonLaunchFailure
		if r.Status == 0 && r.Signal == 0 {
			o.Exit.Status = 1
		}
	case r.Status != 0 || r.Signal != 0:
		o.Final, o.Reason = v1alpha1.StateFailed, status.ReasonNonZeroExitCode
	}
	return o
}

// outOfMemorySignal is the signal Slurm shows for a job that ran out of
// memory (0:125).
const outOfMemorySignal = 125

// outcomeOfContainer returns the outcome of a pod whose agent left no report.
func outcomeOfContainer(p *corev1.Pod) Outcome {
	t := terminatedState(p)
	switch {
	case t == nil:
		return Outcome{Final: v1alpha1.StateFailed, Reason: status.ReasonNonZeroExitCode,
			Message: p.Status.Reason + " " + p.Status.Message, Exit: &v1alpha1.ExitCode{Status: 1}}
	case t.Reason == "OOMKilled":
		return FromReport(wire.Report{OutOfMemory: true})
	case t.ExitCode > 128:
		return FromReport(wire.Report{Kind: wire.ReportEnded, Signal: t.ExitCode - 128})
	}
	return FromReport(wire.Report{Kind: wire.ReportEnded, Status: t.ExitCode})
}

// reportOf returns the agent's last report, from the pod's termination message.
func reportOf(p *corev1.Pod) (r wire.Report, ok bool) {
	t := terminatedState(p)
	if t == nil || json.Unmarshal([]byte(t.Message), &r) != nil {
		return wire.Report{}, false
	}
	return r, r.Kind == wire.ReportEnded || r.Kind == wire.ReportFailed
}

// terminatedState returns how the pod's container ended; nil: it has not.
func terminatedState(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil {
			return t
		}
	}
	return nil
}

// hasEnded reports whether the pod's containers have ended for good.
func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// evicted reports whether the node or the cluster ended the pod, instead of the job.
func evicted(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	switch p.Status.Reason {
	case "Evicted", "NodeLost", "NodeAffinity", "Shutdown", "NodeShutdown", "Terminated", "Preempting":
		return true
	}
	return false
}
