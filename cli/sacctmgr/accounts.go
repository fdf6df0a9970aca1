package sacctmgr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/status"
)

// accountSettings are what add and modify account set.
type accountSettings struct {
	settings
	names                             []string
	parent, description, organization *string
}

func setText(field func(*accountSettings) **string) func(*accountSettings, keyvalue.Pair) error {
	return func(c *accountSettings, p keyvalue.Pair) error {
		*field(c) = &p.Value
		return nil
	}
}

var (
	describeAccount = keyvalue.Table[*accountSettings]{
		{Name: "Description", Least: 1, Set: setText(func(c *accountSettings) **string { return &c.description })},
		{Name: "Organization", Least: 1, Set: setText(func(c *accountSettings) **string { return &c.organization })},
		{Name: "Parent", Least: 3, Set: func(c *accountSettings, p keyvalue.Pair) error {
			parent := strings.ToLower(p.Value)
			c.parent = &parent
			return nil
		}},
	}
	newAccountWords = append(keyvalue.Table[*accountSettings]{
		keyvalue.Any(addAccountNames),
		{Name: "Names", Least: 3, Set: addAccountNames},
		{Name: "Account", Least: 3, Set: addAccountNames},
		{
			Name: "Cluster", Least: 1,
			Set: func(c *accountSettings, p keyvalue.Pair) error { return c.state.requireCluster(p) },
		},
	}, describeAccount...)
)

func addAccountNames(c *accountSettings, p keyvalue.Pair) error {
	c.names = append(c.names, p.LowerList()...)
	return nil
}

// parseAccount parses the words of add or modify account.
func parseAccount(s *state, table keyvalue.Table[*accountSettings], words []keyvalue.Pair) (*accountSettings, error) {
	c := &accountSettings{settings: settings{state: s}}
	for _, p := range words {
		known, err := table.Set(c, p)
		if !known {
			err = c.parseOrRefuse(p)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func addAccounts(e *edit, words []keyvalue.Pair) error {
	c, err := parseAccount(e.state, newAccountWords, words)
	if err != nil {
		return err
	}
	if len(c.names) == 0 {
		return refusef(" Need name of account to add.")
	}
	parent := rootAccount
	if c.parent != nil {
		parent = *c.parent
	}
	if !e.state.hasAccount(parent) {
		return refusef(" Parent account '%s' doesn't exist on cluster %s\n No associations created.", parent,
			e.state.cluster)
	}
	var added []string
	for _, name := range c.names {
		if e.state.hasAccount(name) {
			continue
		}
		if err := checkName("Account", name); err != nil {
			return err
		}
		e.state.accounts[name] = c.newAccount(name, parent)
		added = append(added, name)
	}
	if len(added) == 0 {
		return nothing("new added.")
	}
	showAddedAccounts(e, added, parent, c)
	return nil
}

// newAccount returns an account with the settings and Slurm's defaults.
func (c *accountSettings) newAccount(name, parent string) *status.AcctAccount {
	organization := parent
	if parent == rootAccount {
		organization = name
	}
	a := &status.AcctAccount{
		Name:         name,
		Description:  cmp.Or(deref(c.description), name),
		Organization: cmp.Or(deref(c.organization), organization),
	}
	setParent(a, parent)
	c.apply(&a.Limits, &a.QOS, &a.DefaultQOS)
	return a
}

// setParent moves the account below parent; an account below root names none.
func setParent(a *status.AcctAccount, parent string) {
	a.Parent = parent
	if parent == rootAccount {
		a.Parent = ""
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func showAddedAccounts(e *edit, added []string, parent string, c *accountSettings) {
	description, organization := deref(c.description), deref(c.organization)
	if c.parent != nil || c.shown.Len() > 0 || description != "" || organization != "" {
		c.shown.WriteString(settingLine("Parent", parent))
	}
	e.printNames("Adding Account(s)", added)
	e.printf(" Settings\n  Description     = %s\n  Organization    = %s\n Associations\n",
		cmp.Or(description, "Account Name"), cmp.Or(organization, "Parent/Account Name"))
	for _, name := range added {
		e.printf("  A = %-10s C = %-10s\n", name, e.state.cluster)
	}
	if c.shown.Len() > 0 {
		e.printf(" Settings\n%s", c.shown.String())
	}
}

// accountCondition is what "where" says about accounts.
type accountCondition struct {
	state          *state
	names, parents []string
	otherCluster   bool
}

var accountConditions = keyvalue.Table[*accountCondition]{
	keyvalue.Any((*accountCondition).addNames),
	{Name: "Names", Least: 3, Set: (*accountCondition).addNames},
	{Name: "Account", Least: 3, Set: (*accountCondition).addNames},
	{Name: "Cluster", Least: 1, Set: func(c *accountCondition, p keyvalue.Pair) error {
		c.otherCluster = c.otherCluster || !c.state.namesCluster(p)
		return nil
	}},
	{Name: "Parent", Least: 3, Set: func(c *accountCondition, p keyvalue.Pair) error {
		c.parents = append(c.parents, p.LowerList()...)
		return nil
	}},
}

func (c *accountCondition) addNames(p keyvalue.Pair) error {
	c.names = append(c.names, p.LowerList()...)
	return nil
}

// accountsWhere returns the accounts that meet the conditions, in the order of
// the tree.
func (s *state) accountsWhere(where []keyvalue.Pair) ([]string, error) {
	c := &accountCondition{state: s}
	for _, p := range where {
		if known, err := accountConditions.Set(c, p); err != nil || !known {
			return nil, cmp.Or(err, unknownCondition(p))
		}
	}
	if c.otherCluster {
		return nil, nil
	}
	return filter(s.accountNames(), func(name string) bool {
		return matches(c.names, name) && matches(c.parents, s.parent(name))
	}), nil
}

func modifyAccounts(e *edit, words []keyvalue.Pair) error {
	where, set := splitWhereSet(words)
	if len(set) == 0 {
		return refusef(nothingToSet)
	}
	c, err := parseAccount(e.state, describeAccount, set)
	if err != nil {
		return err
	}
	names, err := e.state.accountsWhere(where)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nothing("modified")
	}
	oldParents := map[string]string{} // which Slurm shows
	for _, name := range names {
		oldParents[name] = e.state.parent(name)
	}
	if c.parent != nil {
		if err := e.state.moveAccounts(names, *c.parent); err != nil {
			return err
		}
	}
	for _, name := range names {
		c.modify(e.state.account(name))
	}
	if c.description != nil || c.organization != nil {
		e.printNames("Modified accounts...", names)
	}
	if !c.empty() || c.parent != nil {
		e.printf(" Modified account associations...\n")
		for _, name := range names {
			e.printf("  C = %-10s A = %s of %s\n", e.state.cluster, name, oldParents[name])
		}
	}
	return nil
}

// account returns the account of the name. The root account gets an object if
// it has none yet.
func (s *state) account(name string) *status.AcctAccount {
	a := s.accounts[name]
	if a == nil {
		a = &status.AcctAccount{Name: name, Description: "default root account", Organization: rootAccount}
		s.accounts[name] = a
	}
	return a
}

func (c *accountSettings) modify(a *status.AcctAccount) {
	if c.description != nil {
		a.Description = *c.description
	}
	if c.organization != nil {
		a.Organization = *c.organization
	}
	c.apply(&a.Limits, &a.QOS, &a.DefaultQOS, c.state.effectiveQOS(a.Name, a.QOS)...)
}

// moveAccounts moves accounts below another. It refuses to move one below
// itself.
func (s *state) moveAccounts(names []string, parent string) error {
	if !s.hasAccount(parent) {
		return refusef(" Parent Account %s doesn't exist.", parent)
	}
	for _, name := range names {
		for ancestor := parent; ancestor != rootAccount; ancestor = s.parent(ancestor) {
			if ancestor == name {
				return refusef(" Account '%s' cannot be moved below itself", name)
			}
		}
		if a := s.accounts[name]; a != nil {
			setParent(a, parent)
		}
	}
	return nil
}

func removeAccounts(e *edit, words []keyvalue.Pair) error {
	where, _ := splitWhereSet(words)
	if len(where) == 0 {
		return refusef(noRemoveConditions)
	}
	names, err := e.state.accountsWhere(where)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return e.state.accounts[n] == nil })
	if len(names) == 0 {
		return nothing("deleted")
	}
	for _, child := range sortedNames(e.state.accounts) {
		if parent := e.state.parent(child); slices.Contains(names, parent) && !slices.Contains(names, child) {
			return refusef(" Account '%s' has the account '%s' below it: delete or move that first", parent, child)
		}
	}
	for _, name := range sortedNames(e.state.users) {
		if err := leaveAccounts(e.state.users[name], names); err != nil {
			return err
		}
	}
	e.printNames("Deleting accounts...", names)
	for _, name := range names {
		delete(e.state.accounts, name)
	}
	return nil
}
