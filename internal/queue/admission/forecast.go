package admission

import (
	"context"
	"encoding/json"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// forecast answers a dry run that asks when the job would start. That there is
// no answer is one, too: the job is accepted all the same.
func (a *Admission) forecast(ctx context.Context, b *v1alpha1.BatchJob, p *patch) {
	if _, asked := b.Annotations[wire.AnnotationForecast]; !asked || a.Forecast == nil {
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
	if err != nil { // numbers and texts
		panic(err)
	}
	p.set("/metadata/annotations/"+escape(wire.AnnotationForecast), string(text))
}
