package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/status"
)

// operate serves POST operations.
func (a *API) operate(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var op status.Operation
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bounds.Operation.Most)).Decode(&op); err != nil {
		response.BadRequest(w, r, fmt.Errorf("the Operation cannot be read: %w", err))
		return
	}
	outcomes, err := a.Operations.Execute(r.Context(), c, &op)
	if err != nil {
		response.BadRequest(w, r, err)
		return
	}
	response.JSON(w, r, &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion, Items: outcomes})
}
