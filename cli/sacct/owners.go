package sacct

import (
	"context"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/translate/status"
)

// records asks the cluster for the records of q. Users and groups that this host has, but
// not the cluster, are no error: they have no records.
func (o *Options) records(ctx context.Context, cluster Accounting, q status.RecordQuery) (*status.RecordList, error) {
	list, err := cluster.Records(ctx, &q)
	if err != nil || len(list.UnknownUsers)+len(list.UnknownGroups) == 0 {
		return list, err
	}
	users := o.p.Unknown("passwd", list.UnknownUsers)
	groups := o.p.Unknown("group", list.UnknownGroups)
	if len(users)+len(groups) > 0 {
		list.UnknownUsers, list.UnknownGroups = users, groups
		return list, nil
	}
	owners := len(q.Users) + len(q.UserIDs)
	q.Users, q.UserIDs = without(q.Users, q.UserIDs, list.UnknownUsers)
	inGroups := len(q.Groups) + len(q.GroupIDs)
	q.Groups, q.GroupIDs = without(q.Groups, q.GroupIDs, list.UnknownGroups)
	list.UnknownUsers, list.UnknownGroups = nil, nil
	if owners > 0 && len(q.Users)+len(q.UserIDs) == 0 || inGroups > 0 && len(q.Groups)+len(q.GroupIDs) == 0 {
		return list, nil // nobody is left, which would mean everybody
	}
	return cluster.Records(ctx, &q)
}

// without returns names and numbers that are not in others.
func without(names []string, numbers []int64, others []string) ([]string, []int64) {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool {
		return slices.Contains(others, strconv.FormatInt(n, 10))
	})
	return names, numbers
}
