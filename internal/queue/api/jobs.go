package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// jobs answers GET jobs.
func (a *API) jobs(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	values := r.URL.Query()
	q, err := query(values)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.extra(&q, values)
	unknown := a.people(&q)
	if watching(values) {
		a.watch(w, r, c, q)
		return
	}
	a.confine(&q, c)
	a.Table.Await(r.Context(), q)
	rows := a.Table.Select(r.Context(), q)
	buf := takeBuffer()
	defer buf.release()
	b := append(buf.bytes[:0], `{"kind":"JobList","apiVersion":"`+apiVersion()+`","time":`...)
	b = strconv.AppendInt(b, a.Now().Unix(), 10)
	if len(unknown) > 0 {
		text, err := json.Marshal(unknown)
		if err == nil {
			b = append(append(b, `,"unknownUsers":`...), text...)
		}
	}
	b = append(b, `,"items":`...)
	b = a.Table.AppendJSON(b, rows, table.Project(list(values, "fields")))
	buf.bytes = append(b, '}')
	reply(w, r, http.StatusOK, buf.bytes)
}

// nobody matches no row.
const nobody = "\x00"

// confine leaves the caller the rows that it may see (PrivateData=jobs).
func (a *API) confine(q *table.Query, c *directory.Caller) {
	if a.Directory.Refusal(c.Roles(), authz.Job, authz.Read) == "" {
		return
	}
	me := nobody
	if c.User != nil && (len(q.Users) == 0 || slices.Contains(q.Users, c.User.Name)) {
		me = c.User.Name
	}
	q.Users = []string{me}
}

// list reads a comma-separated parameter, which may be repeated.
func list(v url.Values, name string) []string {
	var out []string
	for _, text := range v[name] {
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// query reads the filters of GET jobs.
func query(v url.Values) (table.Query, error) {
	q := table.Query{
		Users: list(v, "user"), Partitions: list(v, "partition"), Names: list(v, "name"),
		Accounts: list(v, "account"), QOS: list(v, "qos"),
	}
	refs := newRefs(&q)
	for _, text := range idList(v["id"]) {
		r, ok := parseID(text)
		if !ok {
			r = ref{id: -1} // asked for, and not there
		}
		refs.add(r)
	}
	states(&q, list(v, "state"))
	refs.finish()
	var err error
	q.Nodes, err = hostlist.ParsePattern(v["nodes"]...)
	return q, err
}

// states takes the states asked for; "all" means every one.
func states(q *table.Query, names []string) {
	for _, s := range names {
		if strings.EqualFold(s, "all") {
			q.AllStates = true
		}
		q.States = append(q.States, strings.ToUpper(s))
	}
}
