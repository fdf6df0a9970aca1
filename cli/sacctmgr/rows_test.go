package sacctmgr

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// Accounts are listed after their parent and by name. Accounts in a cycle are not listed.
func TestAccountNames(t *testing.T) {
	s := newState(&status.AcctState{Accounts: []status.AcctAccount{
		{Name: "root"}, {Name: "b"}, {Name: "a"}, {Name: "a2", Parent: "a"}, {Name: "a1", Parent: "a"}, {Name: "orphan", Parent: "nosuch"},
		{Name: "x", Parent: "y"}, {Name: "y", Parent: "x"},
	}})
	if got, want := s.accountNames(), []string{"root", "a", "a1", "a2", "b", "orphan"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Accounts without users and without accounts below them are problems. The search takes little
// time for thousands of accounts.
func TestProblems(t *testing.T) {
	s := &status.AcctState{}
	for i := range 3000 {
		s.Accounts = append(s.Accounts, status.AcctAccount{Name: fmt.Sprintf("parent%04d", i)},
			status.AcctAccount{Name: fmt.Sprintf("child%04d", i), Parent: fmt.Sprintf("parent%04d", i)})
		s.Users = append(s.Users, status.AcctUser{Name: fmt.Sprint("user", i), DefaultAccount: fmt.Sprintf("child%04d", i),
			Associations: []status.AcctAssociation{{Account: fmt.Sprintf("child%04d", i)}}})
	}
	s.Accounts = append(s.Accounts, status.AcctAccount{Name: "empty"})
	rows := listProblems(newState(s), nil)
	if len(rows) != 1 || rows[0].values["Account"] != "empty" {
		t.Errorf("%d problems: %v", len(rows), rows[:min(3, len(rows))])
	}
}
