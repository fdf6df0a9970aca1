package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/status"
)

// Priorities is a Pool that knows priorities and shares, for GET priorities and GET
// shares.
type Priorities interface {
	PrioritiesView() *status.PriorityList
	SharesView() *status.ShareList
}

var errNoPriorities = errors.New("this server has no priorities")

// accepts reports whether the filter has the value, or is not given.
func accepts(filter []string, value string) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// priorities serves GET priorities?id=&user=&partition=&account= (sprio). With
// PrivateData=jobs users see their own jobs.
func (a *API) priorities(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	p, ok := a.Pool.(Priorities)
	if !ok {
		response.NotFound(w, r, errNoPriorities)
		return
	}
	v := r.URL.Query()
	users, partitions, accounts := query.List(v, "user"), query.List(v, "partition"), query.List(v, "account")
	refs := query.List(v, "id")
	ids := query.IDs(refs)
	l := p.PrioritiesView()
	l.Kind, l.APIVersion = "PriorityList", apiVersion
	l.Items = slices.DeleteFunc(l.Items, func(x status.Priority) bool {
		visible := a.Directory.Refusal(a.Directory.RolesOn(c, x.User, ""), authz.Job, authz.Read) == ""
		named := len(refs) == 0 || slices.Contains(ids, x.ID)
		chosen := accepts(users, x.User) && accepts(partitions, x.Partition) && accepts(accounts, x.Account)
		return !visible || !named || !chosen
	})
	response.JSON(w, r, l)
}

// shares serves GET shares?user=&account= (sshare). With PrivateData=usage users
// see their own associations, and the accounts.
func (a *API) shares(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	p, ok := a.Pool.(Priorities)
	if !ok {
		response.NotFound(w, r, errNoPriorities)
		return
	}
	v := r.URL.Query()
	users, accounts := query.List(v, "user"), query.List(v, "account")
	hasAccount := func(account string) bool {
		return len(accounts) == 0 ||
			slices.ContainsFunc(accounts, func(s string) bool { return strings.EqualFold(s, account) })
	}
	l := p.SharesView()
	l.Kind, l.APIVersion = "ShareList", apiVersion
	l.Items = slices.DeleteFunc(l.Items, func(x status.Share) bool {
		if !hasAccount(x.Account) {
			return true
		}
		if x.User == "" { // an account
			return false
		}
		roles := a.Directory.RolesOn(c, x.User, "")
		return a.Directory.Refusal(roles, authz.Cluster, authz.Shares) != "" || !accepts(users, x.User)
	})
	response.JSON(w, r, l)
}
