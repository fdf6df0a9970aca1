package usersync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// Report is how things stand. It is in the ConfigMap wire.DirectoryConfigMap, for berth doctor.
type Report struct {
	Sources  []SourceReport `json:"sources"`
	Problems []string       `json:"problems,omitempty"`
}

// SourceReport is about one source.
type SourceReport struct {
	Name  string     `json:"name"`
	Users int        `json:"users"`           // enabled ones
	Kept  int        `json:"kept,omitempty"`  // missing, but not disabled since they are too many
	Error string     `json:"error,omitempty"` // of the last listing
	Since *time.Time `json:"lastSuccess,omitempty"`
}

// maxProblems bounds the problems in the report, and maxProblem their bytes.
const (
	maxProblems = 200
	maxProblem  = 1000
)

// Report returns how things stand after the last pass.
func (x *Controller) Report() Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.report
	r.Sources = slices.Clone(r.Sources)
	return r
}

// restore takes over from the leader before when each source was listed last.
func (x *Controller) restore(ctx context.Context) {
	m := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: wire.DirectoryConfigMap}
	var r Report
	if x.cluster.Client.Get(ctx, key, m) != nil || json.Unmarshal([]byte(m.Data[wire.DirectoryReport]), &r) != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.report.Sources {
		s := &x.report.Sources[i]
		for _, before := range r.Sources {
			if before.Name == s.Name {
				*s = before
			}
		}
	}
}

// publish updates the report after a pass, writes it, and records events about changes.
func (x *Controller) publish(ctx context.Context, p *plan, listings []listing) {
	before := x.Report()
	now := x.now().UTC().Truncate(time.Second)
	x.mu.Lock()
	x.report.Problems = x.report.Problems[:0:0]
	for _, text := range p.problems[:min(len(p.problems), maxProblems)] {
		x.report.Problems = append(x.report.Problems, truncate(text, maxProblem))
	}
	if more := len(p.problems) - maxProblems; more > 0 {
		x.report.Problems = append(x.report.Problems, fmt.Sprintf("%d more", more))
	}
	for i := range x.report.Sources {
		s, l := &x.report.Sources[i], &listings[i]
		if s.Users, s.Kept, s.Error = p.users[s.Name], p.kept[s.Name], ""; l.err != nil {
			s.Error = l.err.Error()
		} else {
			s.Since = &now
		}
	}
	x.mu.Unlock()
	after := x.Report()
	if err := x.writeReport(ctx, after); err != nil && ctx.Err() == nil {
		x.log.Warn("the report about the directory was not written", "error", err)
	}
	for i := range after.Sources {
		for _, e := range transitions(&before.Sources[i], &after.Sources[i]) {
			if err := x.recordEvent(ctx, e); err != nil && ctx.Err() == nil {
				x.log.Warn("event not recorded", "error", err)
			}
		}
	}
}

// event is what an event says.
type event struct{ kind, reason, text string }

// transitions returns events about what has changed between two reports about a source.
func transitions(before, after *SourceReport) (events []event) {
	switch {
	case after.Error != "" && before.Error == "":
		events = append(events, event{corev1.EventTypeWarning, "DirectoryAway",
			fmt.Sprintf("source %s: %s; its users stay as they are", after.Name, after.Error)})
	case after.Error == "" && before.Error != "":
		events = append(events, event{corev1.EventTypeNormal, "DirectoryBack", "source " + after.Name + " is back"})
	}
	if after.Kept > 0 && before.Kept != after.Kept {
		events = append(events, event{corev1.EventTypeWarning, "DirectoryUsersMissing",
			fmt.Sprintf("source %s: %d users are missing, too many to be disabled", after.Name, after.Kept)})
	}
	return events
}

// writeReport writes the ConfigMap.
func (x *Controller) writeReport(ctx context.Context, r Report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: wire.SystemNamespace, Name: wire.DirectoryConfigMap, Labels: map[string]string{labelPart: "berth"},
	}}
	m.Data = map[string]string{wire.DirectoryReport: string(text)}
	err = x.cluster.Client.Update(ctx, m)
	if apierrors.IsNotFound(err) {
		err = x.cluster.Client.Create(ctx, m)
	}
	return err
}

// truncate returns at most n bytes of a text, as valid UTF-8: parts of it are a directory's.
func truncate(text string, n int) string {
	return strings.ToValidUTF8(text[:min(len(text), n)], "")
}

// labelPart is the label of Berth's objects.
const labelPart = "app.kubernetes.io/name"

// recordEvent writes an event about the ConfigMap.
func (x *Controller) recordEvent(ctx context.Context, e event) error {
	now := metav1.NewTime(x.now())
	h := sha256.Sum256([]byte(e.text + now.String()))
	const maxMessage = 1024 // the API server's limit
	return x.cluster.Client.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wire.SystemNamespace, Name: wire.DirectoryConfigMap + "-" + hex.EncodeToString(h[:10]),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: wire.SystemNamespace, Name: wire.DirectoryConfigMap,
		},
		Type: e.kind, Reason: e.reason, Message: truncate(e.text, maxMessage),
		Source: corev1.EventSource{Component: wire.SchedulerName}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: wire.SchedulerName,
	})
}
