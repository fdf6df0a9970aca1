package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

func TestSubmitRequestsTheForecast(t *testing.T) {
	answer := `{"start":1767323045,"parts":[{"id":8,"partition":"main","cpus":2,"nodes":"n1"}]}`
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		var b batchJob
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		if _, requested := b.Metadata.Annotations[wire.AnnotationForecast]; !requested {
			fmt.Fprint(w, `{"spec":{"job":{},"partition":"main"}}`)
			return
		}
		b.Metadata.Annotations[wire.AnnotationForecast] = answer
		_ = json.NewEncoder(w).Encode(&b)
	})
	got, err := c.Submit(context.Background(), &Submission{DryRun: true, Forecast: true})
	if err != nil || got.Forecast == nil || got.Forecast.Start != 1767323045 || len(got.Forecast.Parts) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	got, err = c.Submit(context.Background(), &Submission{DryRun: true})
	if err != nil || got.Forecast != nil || got.ForecastLines()[0] != "the job would be accepted in partition main" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestForecastText(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 48, 26, 0, time.Local)
	part := func(id, cpus int64, nodes string) wire.ForecastPart {
		return wire.ForecastPart{ID: id, Partition: "debug", CPUs: cpus, Nodes: nodes}
	}
	one := wire.Forecast{Start: at.Unix(), Parts: []wire.ForecastPart{part(5, 1, "n1")}}
	two := wire.Forecast{Start: at.Unix(), Parts: []wire.ForecastPart{part(5, 1, "n[1-2]"), part(6, 2, "n2")}}
	const first = "Job 5 to start at 2026-11-22T12:48:26 using 1 processors on nodes n1 in partition debug"
	for _, c := range []struct {
		f        wire.Forecast
		together string
		each     []string
	}{
		{one, first, []string{first}},
		{two, "Job 5 to start at 2026-11-22T12:48:26 using 3 processors on n[1-2]", []string{
			"Job 5 to start at 2026-11-22T12:48:26 using 1 processors on nodes n[1-2] in partition debug",
			"Job 6 to start at 2026-11-22T12:48:26 using 2 processors on nodes n2 in partition debug",
		}},
		{wire.Forecast{Reason: "Resources"}, "the job would be accepted in partition debug and wait; its start cannot be predicted (Resources)", nil},
		{wire.Forecast{}, "the job would be accepted in partition debug; the scheduler is too busy to predict its start", nil},
	} {
		s := &Submitted{Partition: "debug", Forecast: &c.f}
		if got := s.ForecastSummary(); got != c.together {
			t.Errorf("%q, want %q", got, c.together)
		}
		if got := s.ForecastLines(); c.each != nil && !slices.Equal(got, c.each) {
			t.Errorf("%q, want %q", got, c.each)
		}
	}
}
