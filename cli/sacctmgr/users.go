package sacctmgr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

func noUser(name string) string {
	return fmt.Sprintf(" There is no user '%s' in this cluster: people come as User objects (kubectl apply, or berth up --user), and accounts are given to them here", name)
}

// level reads an administrator's level; ok is false for none.
func level(text string) (string, bool) {
	switch {
	case oneOf(text, "None", 1):
		return "", true
	case oneOf(text, "Operator", 1):
		return "Operator", true
	case oneOf(text, "Administrator", 1), strings.EqualFold(text, "SuperUser"):
		return "Administrator", true
	}
	return "", false
}

func addUsers(p *plan, list []pair) error {
	var names, accounts []string
	c := &common{}
	admin := (*string)(nil)
	for _, x := range list {
		switch {
		case x.key == "", x.is("Names", "Users"):
			names = append(names, x.list()...)
		case oneOf(x.key, "Cluster", 1):
			if p.otherCluster(x) {
				return refusal(fmt.Sprintf(" This cluster '%s' doesn't exist.\n        Contact your admin to add it to accounting.", x.value))
			}
		case x.is("Account"):
			accounts = append(accounts, x.lower()...)
		case x.is("Partitions"):
			c.partitions = x.list()
		case strings.EqualFold(x.key, "DefaultAccount"), oneOf(x.key, "DefaultAccount", 8):
			c.defaultAccount = strings.ToLower(x.value)
		case x.is("AdminLevel"):
			l, ok := level(x.value)
			if !ok {
				return only(invalid("AdminLevel", x))
			}
			admin = &l
		case x.is("WCKeys"):
			c.wckeys = &x
		default:
			known, err := c.set(p, x)
			if err != nil {
				return newUsersWord(err, x)
			}
			if !known {
				return refusal(" Unknown option: " + x.text)
			}
		}
	}
	if len(names) == 0 {
		return refusal(" Need name of user to add.")
	}
	if c.defaultAccount != "" && !slices.Contains(accounts, c.defaultAccount) {
		accounts = append(accounts, c.defaultAccount)
	}
	if len(accounts) == 0 && c.wckeys == nil {
		return refusal(" Need name of account to add user to.")
	}
	for _, a := range accounts {
		if !p.world.hasAccount(a) {
			return refusal(fmt.Sprintf(" This account '%s' doesn't exist.\n        Contact your admin to add this account.\n No associations or wckeys created.", a))
		}
	}
	for _, name := range names {
		if p.world.users[name] == nil {
			return refusal(noUser(name))
		}
	}
	return p.addMembers(names, accounts, admin, c)
}

// newUsersWord is the refusal of a value of a new user's: Slurm says there that
// the word is not known, and no more.
func newUsersWord(err error, x pair) error {
	err = only(err)
	if r := refusal(""); errors.As(err, &r) {
		return refusal(string(r) + "\n Unknown option: " + x.text)
	}
	return err
}

func (p *plan) addMembers(names, accounts []string, admin *string, c *common) error {
	var fresh, lines []string
	changedUser := false
	for _, name := range names {
		u := p.world.users[name]
		isNew := len(accountsOf(u)) == 0
		if isNew && len(accounts) == 0 {
			return refusal(" Need name of account to add.")
		}
		added := 0
		for _, a := range accounts {
			for _, part := range append([]string{""}, c.partitions...)[min(1, len(c.partitions)):] {
				if has(u, a, part) {
					continue
				}
				if !slices.Contains(u.Accounts, a) {
					u.Accounts = append(u.Accounts, a)
				}
				if part != "" || c.any() {
					x := assoc(u, a, part)
					c.apply(&x.Limits, &x.QOS, &x.DefaultQOS)
				}
				added++
				line := fmt.Sprintf("  U = %-9s A = %-10s C = %-10s", name, a, p.world.cluster)
				if part != "" {
					line += fmt.Sprintf(" P = %-10s", part)
				}
				lines = append(lines, line)
			}
		}
		if u.DefaultAccount == "" && len(accounts) > 0 || c.defaultAccount != "" && isNew {
			u.DefaultAccount = accounts[0]
			if c.defaultAccount != "" {
				u.DefaultAccount = c.defaultAccount
			}
			changedUser = true
		}
		if isNew && added > 0 {
			fresh = append(fresh, name)
			if admin != nil {
				u.AdminLevel = *admin
			}
		}
		if c.wckeys != nil {
			u.WCKeys = changed(u.WCKeys, pair{op: "+", value: c.wckeys.value})
			changedUser = true
		}
	}
	if len(lines) == 0 && !changedUser {
		return refusal(" Nothing new added.")
	}
	if len(fresh) > 0 {
		p.say(" Adding User(s)\n")
		for _, n := range fresh {
			p.say("  %s\n", n)
		}
	}
	if len(lines) > 0 {
		p.say(" Associations =\n%s\n", strings.Join(lines, "\n"))
		if c.lines != "" || len(fresh) > 0 {
			p.say(" Non Default Settings\n%s", c.lines)
		}
	}
	return nil
}

// has tells whether the user has that very association.
func has(u *status.AcctUser, account, partition string) bool {
	if partition == "" {
		return member(u, account) && !slices.ContainsFunc(u.Associations, func(a status.AcctAssociation) bool { return a.Account == account && a.Partition != "" }) ||
			slices.ContainsFunc(u.Associations, func(a status.AcctAssociation) bool { return a.Account == account && a.Partition == "" })
	}
	return slices.ContainsFunc(u.Associations, func(a status.AcctAssociation) bool { return a.Account == account && a.Partition == partition })
}

// userCondition is what "where" says about users.
type userCondition struct {
	names, accounts, partitions []string
	none                        bool
}

func (p *plan) usersWhere(where []pair) (c userCondition, err error) {
	for _, x := range where {
		switch {
		case x.key == "", x.is("Names", "Users"):
			c.names = append(c.names, x.list()...)
		case oneOf(x.key, "Cluster", 1):
			c.none = c.none || p.otherCluster(x)
		case x.is("Account"):
			c.accounts = append(c.accounts, x.lower()...)
		case x.is("Partitions"):
			c.partitions = append(c.partitions, x.list()...)
		default:
			return c, refusal(fmt.Sprintf(" Unknown condition: %s\n Use keyword 'set' to modify value", x.text))
		}
	}
	return c, nil
}

// users are those that the condition means and that have an association.
func (c *userCondition) users(w *world) []*status.AcctUser {
	var out []*status.AcctUser
	for _, name := range sortedNames(w.users) {
		u := w.users[name]
		if c.none || len(c.names) > 0 && !slices.Contains(c.names, name) || len(accountsOf(u)) == 0 {
			continue
		}
		if len(c.accounts) > 0 && !slices.ContainsFunc(c.accounts, func(a string) bool { return member(u, a) }) {
			continue
		}
		out = append(out, u)
	}
	return out
}

func (c *userCondition) means(account, partition string) bool {
	return (len(c.accounts) == 0 || slices.Contains(c.accounts, account)) && (len(c.partitions) == 0 || slices.Contains(c.partitions, partition))
}

func modifyUsers(p *plan, list []pair) error {
	where, set := halves(list)
	if len(set) == 0 {
		return refusal(nothingToSet)
	}
	c := &common{}
	admin := (*string)(nil)
	for _, x := range set {
		switch {
		case x.is("AdminLevel"):
			l, ok := level(x.value)
			if !ok {
				return refusal(" Nothing modified")
			}
			admin = &l
		case oneOf(x.key, "DefaultAccount", 8):
			c.defaultAccount = strings.ToLower(x.value)
		case oneOf(x.key, "DefaultWCKey", 8):
			v := x.value
			c.defaultWCKey = &v
		default:
			if known, err := c.set(p, x); err != nil || !known {
				return orUnknown(err, x)
			}
		}
	}
	condition, err := p.usersWhere(where)
	if err != nil {
		return err
	}
	if c.any() || c.defaultAccount != "" {
		p.world.seatRoot(condition.names)
	}
	users := condition.users(p.world)
	if admin != nil || c.defaultWCKey != nil {
		users = condition.everybody(p.world)
	}
	if len(users) == 0 {
		return refusal(" Nothing modified")
	}
	if err := p.userDefaults(users, c, admin); err != nil {
		return err
	}
	if !c.any() {
		return nil
	}
	lines := 0
	p.say(" Modified user associations...\n")
	for _, u := range users {
		for _, account := range accountsOf(u) {
			for _, old := range associations(u, account) {
				if !condition.means(account, old.Partition) {
					continue
				}
				x := assoc(u, account, old.Partition)
				c.apply(&x.Limits, &x.QOS, &x.DefaultQOS, p.world.effectiveQOS(account, x.QOS)...)
				p.say("  C = %-10s A = %-20s U = %-9s\n", p.world.cluster, account, u.Name)
				lines++
			}
		}
	}
	if lines == 0 {
		p.text.Reset()
		return refusal(" Nothing modified")
	}
	return nil
}

// everybody are the users by name alone, in accounts or not.
func (c *userCondition) everybody(w *world) []*status.AcctUser {
	var out []*status.AcctUser
	for _, name := range sortedNames(w.users) {
		u := w.users[name]
		if !c.none && (len(c.names) == 0 || slices.Contains(c.names, name)) &&
			(len(c.accounts) == 0 || slices.ContainsFunc(c.accounts, func(a string) bool { return member(u, a) })) {
			out = append(out, u)
		}
	}
	return out
}

// userDefaults changes what a user has one of.
func (p *plan) userDefaults(users []*status.AcctUser, c *common, admin *string) error {
	if c.defaultAccount != "" {
		for _, u := range users {
			if !member(u, c.defaultAccount) {
				return refusal(fmt.Sprintf(" Can't modify because these users aren't associated with new default account '%s'...\n  U = %s C = %s", c.defaultAccount, u.Name, p.world.cluster))
			}
		}
		for _, u := range users {
			if !slices.Contains(u.Accounts, u.DefaultAccount) && u.DefaultAccount != "" {
				u.Accounts = append(u.Accounts, u.DefaultAccount) // it stays one of them
			}
			u.DefaultAccount = c.defaultAccount
		}
	}
	if admin == nil && c.defaultAccount == "" && c.defaultWCKey == nil {
		return nil
	}
	p.say(" Modified users...\n")
	for _, u := range users {
		if admin != nil {
			u.AdminLevel = *admin
		}
		if c.defaultWCKey != nil {
			u.DefaultWCKey = *c.defaultWCKey
		}
		p.say("  %s\n", u.Name)
	}
	return nil
}

func deleteUsers(p *plan, list []pair) error {
	where, _ := halves(list)
	if len(where) == 0 {
		return refusal(" No conditions given to remove, not executing.")
	}
	condition, err := p.usersWhere(where)
	if err != nil {
		return err
	}
	users := condition.users(p.world)
	if len(users) == 0 {
		return refusal(" Nothing deleted")
	}
	whole := len(condition.accounts)+len(condition.partitions) == 0
	if whole {
		p.say(" Deleting users...\n")
	} else {
		p.say(" Deleting user associations...\n")
	}
	for _, u := range users {
		if whole {
			p.say("  %s\n", u.Name)
			u.Accounts, u.Associations, u.DefaultAccount, u.WCKeys, u.DefaultWCKey = nil, nil, "", nil, ""
			continue
		}
		if err := p.deleteAssociations(u, &condition); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) deleteAssociations(u *status.AcctUser, c *userCondition) error {
	var gone []string
	for _, account := range accountsOf(u) {
		left := 0
		for _, a := range associations(u, account) {
			if !c.means(account, a.Partition) {
				left++
				continue
			}
			p.say("  C = %-10s A = %-10s U = %-9s\n", p.world.cluster, account, u.Name)
			u.Associations = kept(u.Associations, func(x status.AcctAssociation) bool { return x.Account != account || x.Partition != a.Partition })
		}
		if left == 0 {
			gone = append(gone, account)
		}
	}
	return leave(u, gone)
}
