package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

// assocView has the data of show assoc_mgr and the selection from it.
type assocView struct {
	state    *status.AcctState
	shares   map[shareKey]*status.Share
	qosUsage map[string]float64
	qosWall  map[string]float64
	level    map[shareKey]int64 // shares of all siblings, by their parent
	parents  map[string]string
	ids      map[string]int // accounts, by their place in the tree
	counts   map[shareKey]*assocCount
	tres     []string
	oneLine  bool

	accounts, users, qos, flags []string
}

type shareKey struct{ account, user string }

// assocCount is the present usage of an association or QOS.
type assocCount struct{ running, submitted int64 }

// showAssociations prints users, associations and QOS with their limits and present
// usage.
func showAssociations(ctx context.Context, o *Options, c Cluster, words []string) error {
	v := &assocView{oneLine: o.oneLine}
	if err := v.read(words); err != nil {
		return err
	}
	var err error
	if v.state, err = c.Associations(ctx); err != nil {
		return err
	}
	shares, err := c.Shares(ctx)
	if err != nil {
		return err
	}
	list, err := c.Jobs(ctx, jobs.Filter{Fields: []string{"id", "user", "account", "qos", "state"}})
	if err != nil {
		return err
	}
	v.index(shares, list)
	var b strings.Builder
	b.WriteString("Current Association Manager state\n")
	for _, part := range []struct {
		flag string
		add  func(*strings.Builder)
	}{{"users", v.addUsers}, {"assoc", v.addAssociations}, {"qos", v.addQOS}} {
		if len(v.flags) == 0 || slices.Contains(v.flags, part.flag) {
			part.add(&b)
		}
	}
	return o.p.Print(b.String())
}

// read takes accounts=, users=, qos= and flags=.
func (v *assocView) read(words []string) error {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		list := strings.Split(strings.ToLower(value), ",")
		switch {
		case keyvalue.Abbreviates(key, "accounts", 1):
			v.accounts = list
		case keyvalue.Abbreviates(key, "users", 1):
			v.users = list
		case keyvalue.Abbreviates(key, "qos", 1):
			v.qos = list
		case keyvalue.Abbreviates(key, "flags", 1):
			for _, f := range list {
				if f != "users" && f != "assoc" && f != "qos" {
					return plain("invalid flag '%s', valid options are 'Assoc, QOS, and/or Users'", printable.Escape(f))
				}
			}
			v.flags = list
		default:
			return plain("invalid entity: %s for keyword:show assoc_mgr", printable.Escape(w))
		}
	}
	return nil
}

func (v *assocView) index(shares *status.ShareList, list *status.JobList) {
	v.qosUsage, v.qosWall = shares.QOSUsage, shares.QOSWallMins
	v.shares, v.level, v.parents, v.ids = map[shareKey]*status.Share{}, map[shareKey]int64{}, map[string]string{},
		map[string]int{}
	for i := range v.state.Accounts {
		a := &v.state.Accounts[i]
		if v.parents[a.Name] = cmp.Or(a.Parent, "root"); a.Name == "root" {
			v.parents[a.Name] = ""
		}
	}
	for i := range shares.Items {
		s := &shares.Items[i]
		v.shares[shareKey{s.Account, s.User}] = s
		v.level[v.above(s)] += s.RawShares
	}
	v.counts = map[shareKey]*assocCount{}
	for i := range list.Items {
		j := &list.Items[i]
		j.QOS = cmp.Or(j.QOS, "normal")
		v.count(shareKey{j.Account, j.User}, j)
		for a := j.Account; a != ""; a = v.parents[a] {
			v.count(shareKey{a, ""}, j)
		}
		v.count(shareKey{"", j.QOS}, j)
	}
	v.tres = trackedTRES(v.state)
}

// above returns the share that this one is a part of.
func (v *assocView) above(s *status.Share) shareKey {
	if s.User != "" {
		return shareKey{s.Account, ""}
	}
	return shareKey{v.parents[s.Account], ""}
}

func (v *assocView) count(k shareKey, j *status.Job) {
	c := v.counts[k]
	if c == nil {
		c = &assocCount{}
		v.counts[k] = c
	}
	switch j.State {
	case "PENDING":
		c.submitted++
	case "RUNNING", "SUSPENDED", "CONFIGURING":
		c.submitted++
		c.running++
	}
}

// trackedTRES are the TRES that Slurm always tracks, and those limited here.
func trackedTRES(s *status.AcctState) []string {
	base := []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
	more := map[string]bool{}
	note := func(l *status.Limits) {
		for _, m := range []map[string]int64{l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins, l.MaxTRES, l.MaxTRESPerNode,
			l.MaxTRESMins} {
			for name := range m {
				if !slices.Contains(base, name) {
					more[name] = true
				}
			}
		}
	}
	for i := range s.Accounts {
		note(&s.Accounts[i].Limits)
	}
	for i := range s.Users {
		for k := range s.Users[i].Associations {
			note(&s.Users[i].Associations[k].Limits)
		}
	}
	for i := range s.QOS {
		note(&s.QOS[i].Limits)
	}
	return append(base, slices.Sorted(maps.Keys(more))...)
}

func wanted(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, strings.ToLower(name))
}

// heading prints the heading of a section; in one-line form Slurm prints no empty
// lines.
func (v *assocView) heading(b *strings.Builder, text string) {
	if v.oneLine {
		b.WriteString(text + "\n")
		return
	}
	b.WriteString("\n" + text + "\n\n")
}

func (v *assocView) addUsers(b *strings.Builder) {
	v.heading(b, "User Records")
	none := true
	for i := range v.state.Users {
		u := &v.state.Users[i]
		if !wanted(v.users, u.Name) {
			continue
		}
		none = false
		fmt.Fprintf(b, "UserName=%s(%d) DefAccount=%s DefWckey=%s AdminLevel=%s\n", printable.Escape(u.Name), u.UID,
			u.DefaultAccount, u.DefaultWCKey, cmp.Or(u.AdminLevel, "None"))
	}
	if none {
		b.WriteString("No users currently cached in Slurm.\n")
	}
}

func (v *assocView) addAssociations(b *strings.Builder) {
	v.heading(b, "Association Records")
	n, none := 0, true
	children := map[string][]*status.AcctAccount{}
	var root *status.AcctAccount
	for i := range v.state.Accounts {
		a := &v.state.Accounts[i]
		if a.Name == "root" {
			root = a
			continue
		}
		children[v.parents[a.Name]] = append(children[v.parents[a.Name]], a)
	}
	if root == nil {
		root = &status.AcctAccount{Name: "root"}
	}
	var walk func(a *status.AcctAccount)
	walk = func(a *status.AcctAccount) {
		n++
		v.ids[a.Name] = n
		if wanted(v.accounts, a.Name) && len(v.users) == 0 {
			none = false
			v.addAssociation(b, n, &association{account: a.Name, limits: &a.Limits})
		}
		for i := range v.state.Users {
			for _, x := range associationsOf(&v.state.Users[i], a.Name) {
				n++
				if wanted(v.accounts, a.Name) && wanted(v.users, x.user) {
					none = false
					v.addAssociation(b, n, &x)
				}
			}
		}
		for _, c := range children[a.Name] {
			walk(c)
		}
	}
	walk(root)
	if none {
		b.WriteString("No associations currently cached in Slurm.\n")
	}
}

// association is one record: of an account where user is empty.
type association struct {
	account, user, partition string
	uid                      int64
	limits                   *status.Limits
	isDefault                bool
}

// associationsOf are the user's in the account: that of every partition, and
// those of one.
func associationsOf(u *status.AcctUser, account string) []association {
	if !slices.Contains(u.Accounts, account) && u.DefaultAccount != account {
		return nil
	}
	whole := association{
		account:   account,
		user:      u.Name,
		uid:       u.UID,
		limits:    &status.Limits{},
		isDefault: u.DefaultAccount == account,
	}
	var out []association
	for i := range u.Associations {
		x := &u.Associations[i]
		switch {
		case x.Account != account:
		case x.Partition == "":
			whole.limits = &x.Limits
		default:
			out = append(
				out,
				association{account: account, user: u.Name, uid: u.UID, partition: x.Partition, limits: &x.Limits},
			)
		}
	}
	return append([]association{whole}, out...)
}

func (v *assocView) addAssociation(b *strings.Builder, id int, x *association) {
	key := shareKey{x.account, x.user}
	s, c := v.shares[key], v.counts[key]
	if s == nil {
		s = &status.Share{Account: x.account, User: x.user}
	}
	if c == nil {
		c = &assocCount{}
	}
	user, parent := "", ""
	if x.user != "" {
		user = fmt.Sprintf("%s(%d)", printable.Escape(x.user), x.uid)
	} else if p := v.parents[x.account]; p != "" {
		parent = fmt.Sprintf("%s(%d)", p, v.ids[p])
	}
	l := x.limits
	lines := []string{
		fmt.Sprintf(
			"ClusterName=%s Account=%s UserName=%s Partition=%s Priority=%d ID=%d",
			v.state.Cluster,
			x.account,
			user,
			x.partition,
			l.Priority,
			id,
		),
		fmt.Sprintf(
			"SharesRaw/Norm/Level/Factor=%d/%.2f/%d/%.2f",
			s.RawShares,
			s.NormShares,
			v.level[v.above(s)],
			s.FairShare,
		),
		fmt.Sprintf("UsageRaw/Norm/Efctv=%.2f/%.2f/%.2f", s.RawUsage, s.NormUsage, s.EffectvUse),
		fmt.Sprintf("ParentAccount=%s Lft=%d DefAssoc=%s", parent, id, yesNo(x.isDefault)),
		fmt.Sprintf("GrpJobs=%s GrpJobsAccrue=N(0)", limited(int64(l.GrpJobs), c.running)),
		fmt.Sprintf(
			"GrpSubmitJobs=%s GrpWall=%s(%.2f)",
			limited(int64(l.GrpSubmitJobs), c.submitted),
			orN(int64(l.GrpWall)),
			s.WallMins,
		),
		"GrpTRES=" + v.grpTRES(l.GrpTRES, nil),
		"GrpTRESMins=" + v.grpTRES(l.GrpTRESMins, nil),
		"GrpTRESRunMins=" + v.grpTRES(l.GrpTRESRunMins, s.RunMins),
		fmt.Sprintf(
			"MaxJobs=%s MaxJobsAccrue= MaxSubmitJobs=%s MaxWallPJ=%s",
			limitedOrNone(
				int64(l.MaxJobs),
				c.running,
			),
			limitedOrNone(int64(l.MaxSubmitJobs), c.submitted),
			orNone(int64(l.MaxWall)),
		),
		"MaxTRESPJ=" + v.maxTRES(
			l.MaxTRES,
		),
		"MaxTRESPN=" + v.maxTRES(l.MaxTRESPerNode),
		"MaxTRESMinsPJ=" + v.maxTRES(l.MaxTRESMins),
		"MinPrioThresh=",
	}
	v.addRecord(b, lines)
}

func (v *assocView) addRecord(b *strings.Builder, lines []string) {
	between := "\n    "
	if v.oneLine {
		between = " "
	}
	b.WriteString(strings.Join(lines, between) + "\n")
}

func (v *assocView) addQOS(b *strings.Builder) {
	v.heading(b, "QOS Records")
	none := true
	list := v.state.QOS
	if len(list) == 0 {
		list = []status.AcctQOS{{Name: "normal"}} // that of every job
	}
	for i := range list {
		q := &list[i]
		if !wanted(v.qos, q.Name) {
			continue
		}
		none = false
		l, c := &q.Limits, v.counts[shareKey{"", q.Name}]
		if c == nil {
			c = &assocCount{}
		}
		nobody := []string{"Account Limits", "    No Accounts", "User Limits", "    No Users"}
		if v.oneLine {
			nobody = []string{"Account Limits=No Accounts", "User Limits=No Users"}
		}
		v.addRecord(b, append([]string{
			fmt.Sprintf("QOS=%s(%d)", q.Name, i+1),
			fmt.Sprintf("UsageRaw=%.6f", v.qosUsage[q.Name]),
			fmt.Sprintf(
				"GrpJobs=%s GrpJobsAccrue=N(0) GrpSubmitJobs=%s GrpWall=%s(%.2f)",
				limited(
					int64(l.GrpJobs),
					c.running,
				),
				limited(int64(l.GrpSubmitJobs), c.submitted),
				orN(int64(l.GrpWall)),
				v.qosWall[q.Name],
			),
			"GrpTRES=" + v.grpTRES(
				l.GrpTRES,
				nil,
			),
			"GrpTRESMins=" + v.grpTRES(l.GrpTRESMins, nil),
			"GrpTRESRunMins=" + v.grpTRES(l.GrpTRESRunMins, nil),
			"MaxWallPJ=" + orNone(int64(l.MaxWall)),
			"MaxTRESPJ=" + v.maxTRES(
				l.MaxTRES,
			),
			"MaxTRESPN=" + v.maxTRES(l.MaxTRESPerNode),
			"MaxTRESMinsPJ=" + v.maxTRES(l.MaxTRESMins),
			"MinPrioThresh= ",
			"MinTRESPJ=" + v.maxTRES(l.MinTRES),
			"PreemptMode=" + strings.ToUpper(cmp.Or(q.PreemptMode, "OFF")),
			fmt.Sprintf("Priority=%d", q.Priority),
		}, nobody...))
	}
	if none {
		b.WriteString("No QOS currently cached in Slurm.\n")
	}
}

// grpTRES returns the limits of a group with the present usage: N if there is no limit.
func (v *assocView) grpTRES(limit, used map[string]int64) string {
	out := make([]string, len(v.tres))
	for i, name := range v.tres {
		out[i] = name + "=" + limited(limit[name], used[name])
	}
	return strings.Join(out, ",")
}

// maxTRES are the limits alone.
func (v *assocView) maxTRES(limit map[string]int64) string {
	var out []string
	for _, name := range v.tres {
		if n, ok := limit[name]; ok {
			out = append(out, name+"="+strconv.FormatInt(n, 10))
		}
	}
	return strings.Join(out, ",")
}

func limited(limit, used int64) string { return orN(limit) + "(" + strconv.FormatInt(used, 10) + ")" }

func orN(n int64) string { return cmp.Or(orNone(n), "N") }

func orNone(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func limitedOrNone(limit, used int64) string {
	if limit == 0 {
		return ""
	}
	return limited(limit, used)
}

func yesNo(yes bool) string {
	if yes {
		return "Yes"
	}
	return "No"
}
