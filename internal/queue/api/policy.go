package api

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// Policy describes how jobs are ordered; a Pool that has it serves GET
// priorities and GET shares.
type Policy interface {
	PrioritiesView() *status.PriorityList
	SharesView() *status.ShareList
}

func (a *API) policy(w http.ResponseWriter, r *http.Request) Policy {
	p, ok := a.Pool.(Policy)
	if !ok {
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, "this server knows no priorities")
		return nil
	}
	return p
}

// priorities answers GET priorities?id=&user=&partition=&account=. With
// PrivateData=jobs users see their own.
func (a *API) priorities(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	p := a.policy(w, r)
	if p == nil {
		return
	}
	q := r.URL.Query()
	users, parts, accounts := list(q, "user"), list(q, "partition"), list(q, "account")
	ids := numbers(list(q, "id"))
	l := p.PrioritiesView()
	l.Kind, l.APIVersion = "PriorityList", apiVersion()
	l.Items = slices.DeleteFunc(l.Items, func(x status.Priority) bool {
		return a.Directory.Refusal(a.Directory.RolesOn(c, x.User, ""), authz.Job, authz.Read) != "" ||
			len(users) > 0 && !slices.Contains(users, x.User) ||
			len(parts) > 0 && !slices.Contains(parts, x.Partition) ||
			len(accounts) > 0 && !slices.Contains(accounts, x.Account) ||
			len(ids) > 1 && !slices.Contains(ids, x.ID)
	})
	a.list(w, r, l)
}

// shares answers GET shares?user=&account=. With PrivateData=usage users see
// their own associations, and the accounts.
func (a *API) shares(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	p := a.policy(w, r)
	if p == nil {
		return
	}
	q := r.URL.Query()
	users, accounts := list(q, "user"), list(q, "account")
	l := p.SharesView()
	l.Kind, l.APIVersion = "ShareList", apiVersion()
	l.Items = slices.DeleteFunc(l.Items, func(x status.Share) bool {
		return x.User != "" && a.Directory.Refusal(a.Directory.RolesOn(c, x.User, ""), authz.Cluster, authz.Shares) != "" ||
			x.User != "" && len(users) > 0 && !slices.Contains(users, x.User) ||
			len(accounts) > 0 && !slices.ContainsFunc(accounts, func(s string) bool { return strings.EqualFold(s, x.Account) })
	})
	a.list(w, r, l)
}
