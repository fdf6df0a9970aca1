package usersync

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

var (
	someNames = rapid.SampledFrom([]string{"a", "b", "c", "d", "x.y", "x-y", "root", "Bad", ""})
	someUIDs  = rapid.SampledFrom([]int64{-1, 0, 999, 1000, 1001, 1002, 1003, 65534, 1 << 32})
)

func someEntry(t *rapid.T) usersource.Entry {
	return usersource.Entry{
		Name: someNames.Draw(t, "name"), UID: someUIDs.Draw(t, "uid"), GID: rapid.SampledFrom([]int64{0, 1000, 2000}).Draw(t, "gid"),
		Shell:    rapid.SampledFrom([]string{"", "/bin/bash", "/sbin/nologin", "x\ny"}).Draw(t, "shell"),
		MemberOf: rapid.SliceOfN(rapid.SampledFrom([]string{"admins", "ops", "lab"}), 0, 2).Draw(t, "groups"),
		Disabled: rapid.Bool().Draw(t, "disabled"),
	}
}

func someUser(t *rapid.T) *v1alpha1.User {
	u := &v1alpha1.User{}
	u.Name, u.Spec.UID = rapid.SampledFrom([]string{"a", "b", "c", "x-y", "local"}).Draw(t, "user"), someUIDs.Draw(t, "uid of the user")
	u.Spec.Namespace, u.Spec.Disabled = "user-"+u.Name, rapid.Bool().Draw(t, "is disabled")
	if source := rapid.SampledFrom([]string{"", "one", "two", "gone"}).Draw(t, "source"); source != "" {
		u.Labels = map[string]string{v1alpha1.LabelSource: source}
	}
	return u
}

// TestPlans: whatever sources list, a plan changes no user of others, no uid and no namespace,
// gives a new user a uid and a namespace that nobody else has, and gives levels by groups
// only. The plan after it has nothing to do.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := &Policy{
			UIDs: Range{minID, maxID}, GIDs: Range{minID, maxID}, NamespacePrefix: "user-", MaxRemoved: 10,
			Administrators: []string{"admins"},
		}
		users := map[string]*v1alpha1.User{}
		for range rapid.IntRange(0, 4).Draw(t, "users") {
			u := someUser(t)
			users[u.Name] = u
		}
		in := input{policy: policy}
		for _, source := range []string{"one", "two"} {
			l := listing{source: source}
			l.Groups = 1
			for range rapid.IntRange(0, 5).Draw(t, "entries") {
				l.Entries = append(l.Entries, someEntry(t))
			}
			in.listings = append(in.listings, l)
		}
		after := map[string]*v1alpha1.User{}
		for name, u := range users {
			in.users = append(in.users, u)
			after[name] = u
		}
		for _, u := range makePlan(in).apply {
			if have := users[u.Name]; have != nil {
				after[u.Name] = overlay(have, u, policy)
			} else {
				after[u.Name] = u
			}
		}
		checkPlan(t, in, users, after)
	})
}

func checkPlan(t *rapid.T, in input, before, after map[string]*v1alpha1.User) {
	uids, namespaces := map[int64]int{}, map[string]int{}
	in.users = nil
	for _, u := range after {
		uids[u.Spec.UID]++
		namespaces[u.Spec.Namespace]++
		in.users = append(in.users, u)
	}
	for name, u := range after {
		have := before[name]
		source := u.Labels[v1alpha1.LabelSource]
		switch {
		case have == nil:
			if u.Spec.UID < minID || u.Spec.UID > maxID || u.Spec.UID == nobodyID || uids[u.Spec.UID] > 1 ||
				namespaces[u.Spec.Namespace] > 1 || !usersource.ValidName(name) || name == "root" {
				t.Fatalf("a new user: %+v", u)
			}
		case source != "one" && source != "two":
			if !reflect.DeepEqual(have, u) {
				t.Fatalf("a user of others was changed: %+v, before: %+v", u, have)
			}
		case u.Spec.UID != have.Spec.UID || u.Spec.Namespace != have.Spec.Namespace || source != have.Labels[v1alpha1.LabelSource]:
			t.Fatalf("%+v, before: %+v", u, have)
		}
		if u.Spec.AdminLevel == "Administrator" && (disabledHere(u) || !isListedIn(in, name, "admins")) {
			t.Fatalf("an administrator: %+v", u)
		}
	}
	if again := makePlan(in); len(again.apply) > 0 {
		t.Fatalf("the next plan writes %v", written(again))
	}
}

// isListedIn reports whether a source has the user as a member of the group.
func isListedIn(in input, name, group string) bool {
	for i := range in.listings {
		for _, e := range in.listings[i].Entries {
			if e.Name == name && intersect([]string{group}, e.MemberOf) {
				return true
			}
		}
	}
	return false
}
