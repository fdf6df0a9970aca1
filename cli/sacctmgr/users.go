package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/status"
)

func refuseUnknownUser(name string) error {
	return refusef(" There is no user '%s' in this cluster: users are User objects "+
		"(kubectl apply, or berth up --user), and sacctmgr adds them to accounts", name)
}

// parseAdminLevel parses an administrator's level; ok is false if it is none.
func parseAdminLevel(text string) (level string, ok bool) {
	switch {
	case keyvalue.Abbreviates(text, "None", 1):
		return "", true
	case keyvalue.Abbreviates(text, "Operator", 1):
		return "Operator", true
	case keyvalue.Abbreviates(text, "Administrator", 1), strings.EqualFold(text, "SuperUser"):
		return "Administrator", true
	}
	return "", false
}

// userSettings are what add and modify user set.
type userSettings struct {
	settings
	names, accounts, partitions []string
	defaultAccount              string
	adminLevel                  *string
	wckeys                      []string
	defaultWCKey                *string
}

var newUserWords = keyvalue.Table[*userSettings]{
	keyvalue.Any((*userSettings).addNames),
	{Name: "Names", Least: 3, Set: (*userSettings).addNames},
	{Name: "Users", Least: 3, Set: (*userSettings).addNames},
	{Name: "Cluster", Least: 1, Set: func(c *userSettings, p keyvalue.Pair) error { return c.state.requireCluster(p) }},
	{Name: "Account", Least: 3, Set: func(c *userSettings, p keyvalue.Pair) error {
		c.accounts = append(c.accounts, p.LowerList()...)
		return nil
	}},
	{Name: "Partitions", Least: 3, Set: func(c *userSettings, p keyvalue.Pair) error {
		c.partitions = p.List()
		return nil
	}},
	{Name: "DefaultAccount", Least: 8, Set: (*userSettings).setDefaultAccount},
	{Name: "AdminLevel", Least: 3, Set: func(c *userSettings, p keyvalue.Pair) error {
		level, ok := parseAdminLevel(p.Value)
		if !ok {
			return withoutOption(invalidValue("AdminLevel", p))
		}
		c.adminLevel = &level
		return nil
	}},
	{Name: "WCKeys", Least: 3, Set: func(c *userSettings, p keyvalue.Pair) error {
		c.wckeys = append([]string{}, p.LowerList()...) // not nil: it was given
		return nil
	}},
}

var modifiedUserWords = keyvalue.Table[*userSettings]{
	{Name: "AdminLevel", Least: 3, Set: func(c *userSettings, p keyvalue.Pair) error {
		level, ok := parseAdminLevel(p.Value)
		if !ok {
			return nothing("modified")
		}
		c.adminLevel = &level
		return nil
	}},
	{Name: "DefaultAccount", Least: 8, Set: (*userSettings).setDefaultAccount},
	{Name: "DefaultWCKey", Least: 8, Set: func(c *userSettings, p keyvalue.Pair) error {
		c.defaultWCKey = &p.Value
		return nil
	}},
}

func (c *userSettings) addNames(p keyvalue.Pair) error {
	c.names = append(c.names, p.List()...)
	return nil
}

func (c *userSettings) setDefaultAccount(p keyvalue.Pair) error {
	c.defaultAccount = strings.ToLower(p.Value)
	return nil
}

// parseNewUsers parses the words of add user. Accounts and users must exist.
func parseNewUsers(s *state, words []keyvalue.Pair) (*userSettings, error) {
	c := &userSettings{settings: settings{state: s}}
	for _, p := range words {
		known, err := newUserWords.Set(c, p)
		if !known {
			if known, err = c.parse(p); err != nil {
				err = withoutHint(err, p)
			} else if !known {
				err = &refusal{option: p.Text}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.names) == 0 {
		return nil, refusef(" Need name of user to add.")
	}
	if c.defaultAccount != "" && !slices.Contains(c.accounts, c.defaultAccount) {
		c.accounts = append(c.accounts, c.defaultAccount)
	}
	if len(c.accounts) == 0 && c.wckeys == nil {
		return nil, refusef(" Need name of account to add user to.")
	}
	for _, a := range c.accounts {
		if !s.hasAccount(a) {
			return nil, refusef(" This account '%s' doesn't exist.\n"+
				"        Contact your admin to add this account.\n No associations or wckeys created.", a)
		}
	}
	for _, name := range c.names {
		if s.users[name] == nil {
			return nil, refuseUnknownUser(name)
		}
	}
	return c, nil
}

// addUsers adds existing users to accounts.
func addUsers(e *edit, words []keyvalue.Pair) error {
	c, err := parseNewUsers(e.state, words)
	if err != nil {
		return err
	}
	var newUsers, lines []string
	changed := false
	for _, name := range c.names {
		u := e.state.users[name]
		isNew := len(accountsOf(u)) == 0
		if isNew && len(c.accounts) == 0 {
			return refusef(" Need name of account to add.")
		}
		added := c.addAssociations(u)
		lines = append(lines, added...)
		if isNew && len(added) > 0 {
			newUsers = append(newUsers, name)
			if c.adminLevel != nil {
				u.AdminLevel = *c.adminLevel
			}
		}
		if c.setUserDefaults(u, isNew) {
			changed = true
		}
	}
	if len(lines) == 0 && !changed {
		return nothing("new added.")
	}
	if len(newUsers) > 0 {
		e.printNames("Adding User(s)", newUsers)
	}
	if len(lines) > 0 {
		e.printf(" Associations =\n%s\n", strings.Join(lines, "\n"))
		if c.shown.Len() > 0 || len(newUsers) > 0 {
			e.printf(" Non Default Settings\n%s", c.shown.String())
		}
	}
	return nil
}

// addAssociations adds the user to the accounts, in each of the partitions if
// some are named. It returns a line for each association that is new.
func (c *userSettings) addAssociations(u *status.AcctUser) (lines []string) {
	partitions := c.partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	for _, account := range c.accounts {
		for _, partition := range partitions {
			if hasAssociation(u, account, partition) {
				continue
			}
			if !slices.Contains(u.Accounts, account) {
				u.Accounts = append(u.Accounts, account)
			}
			if partition != "" || !c.empty() {
				a := associationIn(u, account, partition)
				c.apply(&a.Limits, &a.QOS, &a.DefaultQOS)
			}
			line := fmt.Sprintf("  U = %-9s A = %-10s C = %-10s", u.Name, account, c.state.cluster)
			if partition != "" {
				line += fmt.Sprintf(" P = %-10s", partition)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// setUserDefaults sets the default account of a user who has none, and adds
// wckeys. It reports whether the command sets any.
func (c *userSettings) setUserDefaults(u *status.AcctUser, isNew bool) (changed bool) {
	needsDefault := u.DefaultAccount == "" && len(c.accounts) > 0
	if needsDefault || isNew && c.defaultAccount != "" {
		u.DefaultAccount = cmp.Or(c.defaultAccount, c.accounts[0])
		changed = true
	}
	if c.wckeys != nil {
		u.WCKeys = keyvalue.Change(u.WCKeys, keyvalue.Add, c.wckeys)
		changed = true
	}
	return changed
}

// userCondition is what "where" says about users.
type userCondition struct {
	state                       *state
	names, accounts, partitions []string
	otherCluster                bool
}

var userConditions = keyvalue.Table[*userCondition]{
	keyvalue.Any((*userCondition).addNames),
	{Name: "Names", Least: 3, Set: (*userCondition).addNames},
	{Name: "Users", Least: 3, Set: (*userCondition).addNames},
	{Name: "Cluster", Least: 1, Set: func(c *userCondition, p keyvalue.Pair) error {
		c.otherCluster = c.otherCluster || !c.state.namesCluster(p)
		return nil
	}},
	{Name: "Account", Least: 3, Set: func(c *userCondition, p keyvalue.Pair) error {
		c.accounts = append(c.accounts, p.LowerList()...)
		return nil
	}},
	{Name: "Partitions", Least: 3, Set: func(c *userCondition, p keyvalue.Pair) error {
		c.partitions = append(c.partitions, p.List()...)
		return nil
	}},
}

func (c *userCondition) addNames(p keyvalue.Pair) error {
	c.names = append(c.names, p.List()...)
	return nil
}

func parseUserCondition(s *state, where []keyvalue.Pair) (*userCondition, error) {
	c := &userCondition{state: s}
	for _, p := range where {
		if known, err := userConditions.Set(c, p); err != nil || !known {
			return nil, cmp.Or(err, unknownCondition(p))
		}
	}
	return c, nil
}

// users returns the users that meet the condition, by name, including those
// without any account.
func (c *userCondition) users() []*status.AcctUser {
	var out []*status.AcctUser
	if c.otherCluster {
		return nil
	}
	for _, name := range sortedNames(c.state.users) {
		u := c.state.users[name]
		inAccount := len(c.accounts) == 0 || slices.ContainsFunc(c.accounts,
			func(a string) bool { return isMember(u, a) })
		if matches(c.names, name) && inAccount {
			out = append(out, u)
		}
	}
	return out
}

// members returns the users that meet the condition and are in an account.
func (c *userCondition) members() []*status.AcctUser {
	return filter(c.users(), func(u *status.AcctUser) bool { return len(accountsOf(u)) > 0 })
}

// matchesAssociation reports whether the condition includes the association.
func (c *userCondition) matchesAssociation(account, partition string) bool {
	return matches(c.accounts, account) && matches(c.partitions, partition)
}

func modifyUsers(e *edit, words []keyvalue.Pair) error {
	where, set := splitWhereSet(words)
	if len(set) == 0 {
		return refusef(nothingToSet)
	}
	c := &userSettings{settings: settings{state: e.state}}
	for _, p := range set {
		known, err := modifiedUserWords.Set(c, p)
		if !known {
			err = c.parseOrRefuse(p)
		}
		if err != nil {
			return err
		}
	}
	condition, err := parseUserCondition(e.state, where)
	if err != nil {
		return err
	}
	if !c.empty() || c.defaultAccount != "" {
		e.state.addRootUser(condition.names)
	}
	users := condition.members()
	if c.adminLevel != nil || c.defaultWCKey != nil {
		users = condition.users()
	}
	if len(users) == 0 {
		return nothing("modified")
	}
	if err := c.modifyDefaults(e, users); err != nil {
		return err
	}
	if c.empty() {
		return nil
	}
	return c.modifyAssociations(e, users, condition)
}

// modifyDefaults sets the administrator's level, the default account and the
// default wckey of users.
func (c *userSettings) modifyDefaults(e *edit, users []*status.AcctUser) error {
	if c.defaultAccount != "" {
		if err := c.moveDefaultAccount(users); err != nil {
			return err
		}
	}
	if c.adminLevel == nil && c.defaultAccount == "" && c.defaultWCKey == nil {
		return nil
	}
	var names []string
	for _, u := range users {
		if c.adminLevel != nil {
			u.AdminLevel = *c.adminLevel
		}
		if c.defaultWCKey != nil {
			u.DefaultWCKey = *c.defaultWCKey
		}
		names = append(names, u.Name)
	}
	e.printNames("Modified users...", names)
	return nil
}

// moveDefaultAccount changes the default account of users who are in the new
// one. They stay in the old one.
func (c *userSettings) moveDefaultAccount(users []*status.AcctUser) error {
	for _, u := range users {
		if !isMember(u, c.defaultAccount) {
			return refusef(" Can't modify because these users aren't associated with new default account '%s'...\n  U = %s C = %s",
				c.defaultAccount, u.Name, c.state.cluster)
		}
	}
	for _, u := range users {
		if u.DefaultAccount != "" && !slices.Contains(u.Accounts, u.DefaultAccount) {
			u.Accounts = append(u.Accounts, u.DefaultAccount)
		}
		u.DefaultAccount = c.defaultAccount
	}
	return nil
}

// modifyAssociations applies the settings to the users' associations that meet
// the condition.
func (c *userSettings) modifyAssociations(e *edit, users []*status.AcctUser, condition *userCondition) error {
	modified := false
	e.printf(" Modified user associations...\n")
	for _, u := range users {
		for _, account := range accountsOf(u) {
			for _, old := range associations(u, account) {
				if !condition.matchesAssociation(account, old.Partition) {
					continue
				}
				a := associationIn(u, account, old.Partition)
				c.apply(&a.Limits, &a.QOS, &a.DefaultQOS, e.state.effectiveQOS(account, a.QOS)...)
				e.printf("  C = %-10s A = %-20s U = %-9s\n", e.state.cluster, account, u.Name)
				modified = true
			}
		}
	}
	if !modified {
		e.shown.Reset()
		return nothing("modified")
	}
	return nil
}

// removeUsers removes users from the accounts and partitions of the condition,
// or from all accounts. Their User objects stay.
func removeUsers(e *edit, words []keyvalue.Pair) error {
	where, _ := splitWhereSet(words)
	if len(where) == 0 {
		return refusef(noRemoveConditions)
	}
	condition, err := parseUserCondition(e.state, where)
	if err != nil {
		return err
	}
	users := condition.members()
	if len(users) == 0 {
		return nothing("deleted")
	}
	if len(condition.accounts)+len(condition.partitions) > 0 {
		e.printf(" Deleting user associations...\n")
		for _, u := range users {
			if err := removeAssociations(e, u, condition); err != nil {
				return err
			}
		}
		return nil
	}
	var names []string
	for _, u := range users {
		names = append(names, u.Name)
		u.Accounts, u.Associations, u.DefaultAccount = nil, nil, ""
		u.WCKeys, u.DefaultWCKey = nil, ""
	}
	e.printNames("Deleting users...", names)
	return nil
}

// removeAssociations removes the user's associations that meet the condition,
// and the user from accounts of which none is left.
func removeAssociations(e *edit, u *status.AcctUser, c *userCondition) error {
	var left []string
	for _, account := range accountsOf(u) {
		remaining := 0
		for _, a := range associations(u, account) {
			if !c.matchesAssociation(account, a.Partition) {
				remaining++
				continue
			}
			e.printf("  C = %-10s A = %-10s U = %-9s\n", e.state.cluster, account, u.Name)
			u.Associations = filter(u.Associations, func(x status.AcctAssociation) bool {
				return x.Account != account || x.Partition != a.Partition
			})
		}
		if remaining == 0 {
			left = append(left, account)
		}
	}
	return leaveAccounts(u, left)
}

// leaveAccounts removes a user from accounts. It refuses to remove the default
// account while the user is in another.
func leaveAccounts(u *status.AcctUser, accounts []string) error {
	isLeft := func(a string) bool { return slices.Contains(accounts, a) }
	if isLeft(u.DefaultAccount) {
		if remaining := slices.DeleteFunc(accountsOf(u), isLeft); len(remaining) > 0 {
			return refusef(" Users listed below have these as their Default Accounts.\n  U = %-9s A = %s\n"+
				" Please change their default account first (modify user %s set defaultaccount=%s)",
				u.Name, u.DefaultAccount, u.Name, remaining[0])
		}
		u.DefaultAccount = ""
	}
	u.Accounts = filter(u.Accounts, func(a string) bool { return !isLeft(a) })
	u.Associations = filter(u.Associations, func(a status.AcctAssociation) bool { return !isLeft(a.Account) })
	return nil
}
