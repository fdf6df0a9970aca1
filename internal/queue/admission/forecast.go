package admission

import (
	"context"
	"encoding/json"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// requestsForecast reports whether a dry run asks when the job would start (--test-only).
func requestsForecast(b *v1alpha1.BatchJob) bool {
	_, requested := b.Annotations[wire.AnnotationForecast]
	return requested
}

// forecast adds to the response of a dry run when the job would start, if the request
// asks for that. Without a forecast the job is accepted all the same.
func (a *Admission) forecast(ctx context.Context, b *v1alpha1.BatchJob, p *patch) {
	if !requestsForecast(b) || a.Forecast == nil {
		return
	}
	f, ok := a.Forecast.Forecast(ctx, b)
	if !ok {
		f = &wire.Forecast{}
	}
	for i := range f.Parts {
		f.Parts[i].ID = a.IDs.Peek() + int64(i)
	}
	text, err := json.Marshal(f)
	if err != nil { // it has numbers and texts only
		panic(err)
	}
	p.set("/metadata/annotations/"+escape(wire.AnnotationForecast), string(text))
}
