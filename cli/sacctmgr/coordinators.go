package sacctmgr

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth/internal/keyvalue"
)

// coordination is what add and delete coordinator name.
type coordination struct{ accounts, users []string }

var coordinatorWords = keyvalue.Table[*coordination]{
	{Name: "Account", Least: 3, Set: func(c *coordination, p keyvalue.Pair) error {
		c.accounts = append(c.accounts, p.LowerList()...)
		return nil
	}},
	keyvalue.Any((*coordination).addUsers),
	{Name: "Names", Least: 3, Set: (*coordination).addUsers},
	{Name: "Users", Least: 3, Set: (*coordination).addUsers},
}

func (c *coordination) addUsers(p keyvalue.Pair) error {
	c.users = append(c.users, p.List()...)
	return nil
}

// parseCoordination parses the words of add and delete coordinator. Users and
// accounts must exist.
func parseCoordination(s *state, words []keyvalue.Pair) (*coordination, error) {
	c := &coordination{}
	for _, p := range words {
		if known, err := coordinatorWords.Set(c, p); err != nil || !known {
			return nil, cmp.Or(err, unknownOption(p))
		}
	}
	if len(c.users) == 0 || len(c.accounts) == 0 {
		return nil, refusef(" You need to specify a user list and an account list here")
	}
	for _, u := range c.users {
		if s.users[u] == nil {
			return nil, refusef(" You specified a non-existent user '%s'.", u)
		}
	}
	for _, a := range c.accounts {
		if s.accounts[a] == nil {
			return nil, refusef(" You specified a non-existent account '%s'.", a)
		}
	}
	return c, nil
}

func addCoordinators(e *edit, words []keyvalue.Pair) error {
	c, err := parseCoordination(e.state, words)
	if err != nil {
		return err
	}
	e.printNames("Adding Coordinator User(s)", c.users)
	e.printNames("To Account(s) and all sub-accounts", c.accounts)
	for _, name := range c.accounts {
		a := e.state.accounts[name]
		a.Coordinators = keyvalue.Change(a.Coordinators, keyvalue.Add, c.users)
	}
	return nil
}

func removeCoordinators(e *edit, words []keyvalue.Pair) error {
	c, err := parseCoordination(e.state, words)
	if err != nil {
		return err
	}
	e.printNames("Removing Coordinators with user name", c.users)
	e.printNames("From Account(s)", c.accounts)
	e.printf(" Removed Coordinators (sub accounts not listed)...\n")
	for _, name := range c.accounts {
		a := e.state.accounts[name]
		for _, u := range c.users {
			if slices.Contains(a.Coordinators, u) {
				e.printf("  U = %-9s A = %-10s\n", u, name)
			}
		}
		a.Coordinators = keyvalue.Change(a.Coordinators, keyvalue.Remove, c.users)
	}
	return nil
}
