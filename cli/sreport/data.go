package sreport

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// rootAccount is the account above all others.
const rootAccount = "root"

// data is what a report is computed from.
type data struct {
	*status.UsageList
	seconds int64             // from the start to the end of the report
	parents map[string]string // of accounts
	users   []string          // of the cluster

	// Only for reports on reservations.
	reservations []status.Reservation
	records      []status.Record
	operator     bool // the caller is one; set for reports on wckeys
}

// noPrivilege is what Slurm prints for reports on wckeys to users.
const noPrivilege = "sreport: error: Your user doesn't have privilege to perform this action"

// read reads the usage and the accounts from the cluster and, for a report on
// reservations, the reservations and the jobs that ran in them.
func (o *Options) read(ctx context.Context) (*data, error) {
	c, err := o.connect()
	if err != nil {
		return nil, err
	}
	ofReservations := o.kind == "reservation"
	list, err := c.Usage(ctx, &status.UsageQuery{
		Start: o.start.Unix(), End: o.end.Unix(), Jobs: o.kind == "job", Reservations: ofReservations})
	if err != nil {
		return nil, err
	}
	state, err := c.Associations(ctx)
	if err != nil {
		return nil, err
	}
	d := &data{UsageList: list, seconds: o.end.Unix() - o.start.Unix(), parents: parentsOf(state.Accounts)}
	for i := range state.Users {
		d.users = append(d.users, state.Users[i].Name)
	}
	if err := o.filterTRES(d); err != nil {
		return nil, err // Slurm finds this before it comes to the conditions
	}
	if _, err := o.p.Err.Write(o.notes.Bytes()); err != nil {
		return nil, err
	}
	if o.ofWCKeys {
		info, err := c.ClusterInfo(ctx)
		if err != nil {
			return nil, err
		}
		d.operator, _ = info["operator"].(bool)
	}
	if ofReservations {
		if err := d.readReservations(ctx, c, o); err != nil {
			return nil, err
		}
	}
	if !o.reports(d.Cluster) {
		d.Items, d.reservations, d.records, d.Capacity, d.Reported = nil, nil, nil, nil, map[string]int64{}
	}
	wanted := o.wantedUsers(d)
	d.Items = slices.DeleteFunc(d.Items, func(u status.Usage) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, u.User)
	})
	return d, nil
}

// wantedUsers returns the users to which users= limits the report; none: all of them. As in
// Slurm, reports of job sizes ignore names that no user has, and AccountUtilizationByUser
// ignores empty ones.
func (o *Options) wantedUsers(d *data) []string {
	ignored := func(string) bool { return false }
	switch {
	case o.kind == "job":
		ignored = func(name string) bool { return o.isUnknownUser(d, name) || name == "" }
	case o.byUser:
		ignored = func(name string) bool { return name == "" }
	}
	return slices.DeleteFunc(slices.Clone(o.users), ignored)
}

// reports reports whether the cluster is one of those that --cluster names. Empty names do
// not count.
func (o *Options) reports(cluster string) bool {
	named := slices.DeleteFunc(slices.Clone(o.clusters), func(name string) bool { return name == "" })
	return len(named) == 0 || slices.ContainsFunc(named, func(name string) bool {
		return strings.EqualFold(name, cluster)
	})
}

func parentsOf(accounts []status.AcctAccount) map[string]string {
	parents := map[string]string{}
	for _, a := range accounts {
		if a.Name == rootAccount {
			continue
		}
		parents[a.Name] = a.Parent
		if a.Parent == "" {
			parents[a.Name] = rootAccount
		}
	}
	return parents
}

// available returns the TRES-seconds that the cluster could have provided.
func (d *data) available(tres string) int64 {
	if d.Reported != nil {
		return d.Reported[tres]
	}
	return d.Capacity[tres] * d.seconds
}

// lineage returns the account and its ancestors up to root.
func (d *data) lineage(account string) []string {
	out := []string{account}
	for len(out) < 100 && account != rootAccount {
		parent, ok := d.parents[account]
		if !ok {
			parent = rootAccount
		}
		if account == "" || parent == account {
			break
		}
		out, account = append(out, parent), parent
	}
	return out
}
