package sacctmgr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

func addAccounts(p *plan, list []pair) error {
	var names []string
	c := &common{}
	parent, description, organization, told := root, "", "", false
	for _, x := range list {
		switch {
		case x.key == "", x.is("Names", "Account"):
			names = append(names, x.lower()...)
		case oneOf(x.key, "Cluster", 1):
			if p.otherCluster(x) {
				return refusal(fmt.Sprintf(" This cluster '%s' doesn't exist.\n        Contact your admin to add it to accounting.", x.value))
			}
		case x.is("Parent"):
			parent, told = strings.ToLower(x.value), true
		case oneOf(x.key, "Description", 1) && !x.is("DefaultQOS"):
			description = x.value
		case oneOf(x.key, "Organization", 1):
			organization = x.value
		default:
			if known, err := c.set(p, x); err != nil || !known {
				return orUnknown(err, x)
			}
		}
	}
	if len(names) == 0 {
		return refusal(" Need name of account to add.")
	}
	if !p.world.hasAccount(parent) {
		return refusal(fmt.Sprintf(" Parent account '%s' doesn't exist on cluster %s\n No associations created.", parent, p.world.cluster))
	}
	var fresh []string
	for _, name := range names {
		if p.world.hasAccount(name) {
			continue
		}
		if err := checkName("Account", name); err != nil {
			return err
		}
		a := &status.AcctAccount{Name: name, Parent: parent, Description: description, Organization: organization}
		if a.Parent == root {
			a.Parent = ""
		}
		if a.Description == "" {
			a.Description = name
		}
		if a.Organization == "" {
			a.Organization = name
			if parent != root {
				a.Organization = parent
			}
		}
		c.apply(&a.Limits, &a.QOS, &a.DefaultQOS)
		p.world.accounts[name] = a
		fresh = append(fresh, name)
	}
	if len(fresh) == 0 {
		return refusal(" Nothing new added.")
	}
	if told || c.lines != "" || description != "" || organization != "" {
		c.lines += setting("Parent", parent)
	}
	showAdded(p, fresh, description, organization, c)
	return nil
}

func orUnknown(err error, x pair) error {
	if err != nil {
		return err
	}
	return unknown(x)
}

func showAdded(p *plan, fresh []string, description, organization string, c *common) {
	p.say(" Adding Account(s)\n")
	for _, name := range fresh {
		p.say("  %s\n", name)
	}
	if description == "" {
		description = "Account Name"
	}
	if organization == "" {
		organization = "Parent/Account Name"
	}
	p.say(" Settings\n  Description     = %s\n  Organization    = %s\n Associations\n", description, organization)
	for _, name := range fresh {
		p.say("  A = %-10s C = %-10s\n", name, p.world.cluster)
	}
	if c.lines != "" {
		p.say(" Settings\n%s", c.lines)
	}
}

// accountsWhere are the accounts that the conditions mean.
func (p *plan) accountsWhere(where []pair) ([]string, error) {
	var names, parents []string
	for _, x := range where {
		switch {
		case x.key == "", x.is("Names", "Account"):
			names = append(names, x.lower()...)
		case oneOf(x.key, "Cluster", 1):
			if p.otherCluster(x) {
				return nil, nil
			}
		case x.is("Parent"):
			parents = append(parents, x.lower()...)
		default:
			return nil, refusal(fmt.Sprintf(" Unknown condition: %s\n Use keyword 'set' to modify value", x.text))
		}
	}
	var out []string
	for _, name := range p.world.accountNames() {
		if len(names) > 0 && !slices.Contains(names, name) || len(parents) > 0 && !slices.Contains(parents, p.world.parent(name)) {
			continue
		}
		out = append(out, name)
	}
	return out, nil
}

func modifyAccounts(p *plan, list []pair) error {
	where, set := halves(list)
	if len(set) == 0 {
		return refusal(nothingToSet)
	}
	c := &common{}
	var description, organization, parent *string
	for _, x := range set {
		v := x.value
		switch {
		case oneOf(x.key, "Description", 1) && !strings.EqualFold(x.key, "def"):
			description = &v
		case oneOf(x.key, "Organization", 1):
			organization = &v
		case x.is("Parent"):
			v = strings.ToLower(v)
			parent = &v
		default:
			if known, err := c.set(p, x); err != nil || !known {
				return orUnknown(err, x)
			}
		}
	}
	names, err := p.accountsWhere(where)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return refusal(" Nothing modified")
	}
	was := map[string]string{} // Slurm names the parent that an account had
	for _, name := range names {
		was[name] = p.world.parent(name)
	}
	if parent != nil {
		if err := p.moveAccounts(names, *parent); err != nil {
			return err
		}
	}
	for _, name := range names {
		a := p.world.accounts[name]
		if a == nil { // root, which has no object until something is to be kept of it
			a = &status.AcctAccount{Name: name, Description: "default root account", Organization: root}
			p.world.accounts[name] = a
		}
		if description != nil {
			a.Description = *description
		}
		if organization != nil {
			a.Organization = *organization
		}
		c.apply(&a.Limits, &a.QOS, &a.DefaultQOS, p.world.effectiveQOS(name, a.QOS)...)
	}
	if description != nil || organization != nil {
		p.say(" Modified accounts...\n")
		for _, name := range names {
			p.say("  %s\n", name)
		}
	}
	if c.any() || parent != nil {
		p.say(" Modified account associations...\n")
		for _, name := range names {
			p.say("  C = %-10s A = %s of %s\n", p.world.cluster, name, was[name])
		}
	}
	return nil
}

// moveAccounts hangs accounts below another; none may come below itself.
func (p *plan) moveAccounts(names []string, parent string) error {
	if !p.world.hasAccount(parent) {
		return refusal(fmt.Sprintf(" Parent Account %s doesn't exist.", parent))
	}
	for _, name := range names {
		for up := parent; up != root; up = p.world.parent(up) {
			if up == name {
				return refusal(fmt.Sprintf(" Account '%s' cannot come below itself", name))
			}
		}
		if a := p.world.accounts[name]; a != nil {
			a.Parent = parent
			if parent == root {
				a.Parent = ""
			}
		}
	}
	return nil
}

func deleteAccounts(p *plan, list []pair) error {
	where, _ := halves(list)
	if len(where) == 0 {
		return refusal(" No conditions given to remove, not executing.")
	}
	names, err := p.accountsWhere(where)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return p.world.accounts[n] == nil })
	if len(names) == 0 {
		return refusal(" Nothing deleted")
	}
	for _, child := range sortedNames(p.world.accounts) {
		if up := p.world.parent(child); slices.Contains(names, up) && !slices.Contains(names, child) {
			return refusal(fmt.Sprintf(" Account '%s' has the account '%s' below it: delete or move that first", up, child))
		}
	}
	for _, u := range p.world.users {
		if err := leave(u, names); err != nil {
			return err
		}
	}
	p.say(" Deleting accounts...\n")
	for _, name := range names {
		p.say("  %s\n", name)
		delete(p.world.accounts, name)
	}
	return nil
}

// leave takes a user out of accounts.
func leave(u *status.AcctUser, accounts []string) error {
	left := slices.DeleteFunc(accountsOf(u), func(a string) bool { return slices.Contains(accounts, a) })
	if slices.Contains(accounts, u.DefaultAccount) {
		if len(left) > 0 {
			return refusal(fmt.Sprintf(" Users listed below have these as their Default Accounts.\n  U = %-9s A = %s\n Please change their default account first (modify user %s set defaultaccount=%s)",
				u.Name, u.DefaultAccount, u.Name, left[0]))
		}
		u.DefaultAccount = ""
	}
	u.Accounts = kept(u.Accounts, func(a string) bool { return !slices.Contains(accounts, a) })
	u.Associations = kept(u.Associations, func(a status.AcctAssociation) bool { return !slices.Contains(accounts, a.Account) })
	return nil
}

// kept is a new list of what passes; nil for none.
func kept[T any](list []T, keep func(T) bool) []T {
	var out []T
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// coordinators reads the words of add and delete coordinator.
func coordinators(p *plan, list []pair) (accounts, users []string, err error) {
	for _, x := range list {
		switch {
		case x.is("Account"):
			accounts = append(accounts, x.lower()...)
		case x.key == "", x.is("Names", "Users"):
			users = append(users, x.list()...)
		default:
			return nil, nil, unknown(x)
		}
	}
	if len(users) == 0 || len(accounts) == 0 {
		return nil, nil, refusal(" You need to specify a user list and an account list here")
	}
	for _, u := range users {
		if p.world.users[u] == nil {
			return nil, nil, refusal(fmt.Sprintf(" You specified a non-existent user '%s'.", u))
		}
	}
	for _, a := range accounts {
		if p.world.accounts[a] == nil {
			return nil, nil, refusal(fmt.Sprintf(" You specified a non-existent account '%s'.", a))
		}
	}
	return accounts, users, nil
}

func addCoordinators(p *plan, list []pair) error {
	accounts, users, err := coordinators(p, list)
	if err != nil {
		return err
	}
	p.say(" Adding Coordinator User(s)\n")
	for _, u := range users {
		p.say("  %s\n", u)
	}
	p.say(" To Account(s) and all sub-accounts\n")
	for _, name := range accounts {
		p.say("  %s\n", name)
		a := p.world.accounts[name]
		for _, u := range users {
			if !slices.Contains(a.Coordinators, u) {
				a.Coordinators = append(a.Coordinators, u)
			}
		}
	}
	return nil
}

func deleteCoordinators(p *plan, list []pair) error {
	accounts, users, err := coordinators(p, list)
	if err != nil {
		return err
	}
	p.say(" Removing Coordinators with user name\n")
	for _, u := range users {
		p.say("  %s\n", u)
	}
	p.say(" From Account(s)\n")
	for _, name := range accounts {
		p.say("  %s\n", name)
	}
	p.say(" Removed Coordinators (sub accounts not listed)...\n")
	for _, name := range accounts {
		a := p.world.accounts[name]
		for _, u := range users {
			if slices.Contains(a.Coordinators, u) {
				p.say("  U = %-9s A = %-10s\n", u, name)
			}
		}
		a.Coordinators = kept(a.Coordinators, func(u string) bool { return !slices.Contains(users, u) })
	}
	return nil
}
