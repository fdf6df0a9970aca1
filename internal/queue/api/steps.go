package api

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// steps answers GET steps: the filters of GET jobs, and step=12.0,12.batch.
func (a *API) steps(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	values := r.URL.Query()
	named := map[string]bool{}
	for _, id := range list(values, "step") {
		job, _, _ := strings.Cut(id, ".")
		values.Add("id", job)
		named[id] = true
	}
	q, err := query(values)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.extra(&q, values)
	out := &status.StepList{Kind: "StepList", APIVersion: apiVersion(), Time: a.Now().Unix(), UnknownUsers: a.people(&q)}
	a.confine(&q, c)
	out.Items = a.Table.Steps(r.Context(), q)
	if len(named) > 0 {
		out.Items = slices.DeleteFunc(out.Items, func(s status.Step) bool { return !named[s.ID] })
	}
	if out.Items == nil {
		out.Items = []status.Step{}
	}
	a.list(w, r, out)
}
