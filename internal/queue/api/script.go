package api

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// script answers GET scripts?id=12: a job's script, for its owner and for
// operators. Others learn no more than that they may not.
func (a *API) script(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	out := &status.Script{Kind: "Script", APIVersion: apiVersion(), Error: textInvalidID}
	defer func() { a.list(w, r, out) }()
	ref, ok := parseID(r.URL.Query().Get("id"))
	if !ok {
		return
	}
	row := a.Table.Get(a.oneJob(r.Context(), ref))
	if row == nil {
		return
	}
	b, err := a.Operations.job(c, row, authz.Script)
	if err != nil {
		out.Error = text(err)
		return
	}
	if b, err = a.Operations.made(r.Context(), b); err != nil {
		out.Error = text(err)
		return
	}
	whole := &v1alpha1.BatchJob{} // the store does without scripts
	if err := a.Operations.Cluster.Client.Get(r.Context(), client.ObjectKeyFromObject(b), whole); err != nil {
		out.Error = text(err)
		return
	}
	out.Script, out.Environment, out.Error = whole.Spec.Script, whole.Spec.Environment, ""
}
