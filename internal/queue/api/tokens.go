package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/status"
)

// maxTokenBody bounds the body of a request for a token, in bytes.
const maxTokenBody = 4 << 10

// token serves POST tokens (scontrol token): a token of the ServiceAccount that the user's
// jobs have. It is not bound to a pod, so it is not accepted from agents.
func (a *API) token(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var in status.Token
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTokenBody)).Decode(&in); err != nil {
		response.BadRequest(w, r, fmt.Errorf("the request cannot be read: %w", err))
		return
	}
	if in.User == "" && c.User != nil {
		in.User = c.User.Name
	}
	roles := a.Directory.RolesOn(c, in.User, "")
	u := a.Directory.User(in.User)
	if a.Directory.Refusal(roles, authz.Token, authz.Create) != "" {
		response.Forbidden(w, r, refusal.InvalidUser)
		return
	}
	if u == nil || u.Spec.Namespace == "" || a.Directory.Owner(u.Spec.Namespace) != u {
		response.BadRequest(w, r, refusal.InvalidUser)
		return
	}
	if err := a.checkTokenLife(c, in.Life); err != nil {
		response.BadRequest(w, r, err)
		return
	}
	out, err := a.issue(r, u, in.Life)
	if err != nil {
		code, reason := http.StatusInternalServerError, apierrors.ReasonForError(err)
		if s, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // it is not wrapped
			code = int(cmp.Or(s.Status().Code, int32(code)))
		}
		response.Error(w, r, code, reason, "the API server issues no token: "+err.Error())
		return
	}
	response.JSON(w, r, out)
}

// checkTokenLife refuses a lifetime that is too short for the API server or, for a caller
// who is no administrator, longer than the cluster allows.
func (a *API) checkTokenLife(c *directory.Caller, seconds int64) error {
	most := cmp.Or(a.Directory.Parameters().MaxTokenLife, status.MaxTokenLife)
	switch {
	case seconds < status.MinTokenLife:
		return fmt.Errorf("a token lives at least %d seconds", status.MinTokenLife)
	case c.Admin || c.Trusted:
		return nil
	case most < 0:
		return fmt.Errorf("this cluster issues no tokens to users")
	case seconds > most:
		return fmt.Errorf("a token lives at most %d seconds", most)
	}
	return nil
}

// issue requests the token from the API server.
func (a *API) issue(r *http.Request, u *v1alpha1.User, seconds int64) (*status.Token, error) {
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ServiceAccountName, Namespace: u.Spec.Namespace},
	}
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	now := a.Now()
	err := a.Operations.Cluster.Client.SubResource("token").Create(r.Context(), account, request)
	if err != nil {
		return nil, err
	}
	return &status.Token{
		Kind: "Token", APIVersion: apiVersion, User: u.Name, Token: request.Status.Token,
		Life: int64(request.Status.ExpirationTimestamp.Sub(now).Round(time.Second).Seconds()),
	}, nil
}
