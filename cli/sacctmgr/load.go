package sacctmgr

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/status"
)

// load changes the associations to those of a dump; "clean" removes what the dump does
// not have. Either all changes are made, or none.
func (o *Options) load(ctx context.Context, words []string) error {
	file, clean := "", false
	for _, p := range keyvalue.ParseAll(words) {
		switch {
		case p.Key == "" && keyvalue.Abbreviates(p.Value, "clean", 5):
			clean = true
		case p.Key == "", keyvalue.Abbreviates(p.Key, "File", 1):
			file = p.Value
		case keyvalue.Abbreviates(p.Key, "Cluster", 1):
		default:
			return o.explain(&refusal{option: p.Text})
		}
	}
	if file == "" {
		return o.explain(refusef(" No filename given, specify one with file=''"))
	}
	data, err := o.p.ReadFile(file)
	if err != nil {
		return o.explain(refusef(" Unable to read %q: %s", file, strerror.Text(err)))
	}
	s, err := o.readState(ctx)
	if err != nil {
		return err
	}
	if err := s.load(string(data), clean); err != nil {
		return o.explain(err)
	}
	changes := s.changes()
	if len(changes) == 0 {
		o.printUnlessQuiet(" Nothing new added.\n")
		return nil
	}
	for _, c := range changes {
		o.printUnlessQuiet(" " + describeChange(c) + "\n")
	}
	return o.commit(ctx, changes)
}

func describeChange(c status.AcctChange) string {
	verb := "Setting"
	if c.Delete {
		verb = "Deleting"
	}
	switch {
	case c.Account != nil:
		return verb + " account " + c.Account.Name
	case c.User != nil:
		return verb + " user " + c.User.Name
	}
	return verb + " QOS " + c.QOS.Name
}

// load applies the lines of a dump to the state.
func (s *state) load(dump string, clean bool) error {
	if clean {
		s.removeAll()
	}
	l := &loader{state: s, parent: rootAccount}
	n := 0
	for line := range strings.Lines(dump) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := l.line(line); err != nil {
			return refusef(" line(%d) %s", n, strings.TrimSpace(err.Error()))
		}
	}
	return nil
}

// removeAll removes all accounts, and all users from them.
func (s *state) removeAll() {
	clear(s.accounts)
	for _, u := range s.users {
		u.Accounts, u.Associations, u.DefaultAccount = nil, nil, ""
	}
}

// loader applies the lines of a dump one after another.
type loader struct {
	state  *state
	parent string // of the last line "Parent"
}

// line applies a line such as KIND - 'NAME':OPTION='VALUE':...
func (l *loader) line(line string) error {
	kind, rest, ok := strings.Cut(line, "-")
	if !ok {
		return refusef("cannot be parsed: %s", line)
	}
	words := splitDumpLine(strings.TrimSpace(rest))
	name, options := words[0].Value, words[1:]
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "cluster", "machine":
		if l.state.accounts[rootAccount] == nil && (len(options) == 0 || options[0].Text == "Fairshare=1") {
			return nil // the root account needs no object
		}
		return l.state.loadAccount(rootAccount, "", options)
	case "parent":
		if l.parent = strings.ToLower(name); !l.state.hasAccount(l.parent) {
			return refusef("the account '%s' has not been created by a line before", l.parent)
		}
		return nil
	case "account", "project":
		return l.state.loadAccount(strings.ToLower(name), l.parent, options)
	case "user":
		return l.state.loadUser(name, l.parent, options)
	}
	return refusef("misformatted line: %s", line)
}

// splitDumpLine splits 'name':A=b:C='d:e' at the colons outside of quotes.
func splitDumpLine(text string) []keyvalue.Pair {
	parts := keyvalue.Split(text, func(r rune) bool { return r == ':' })
	if len(parts) == 0 {
		parts = []string{""}
	}
	// A time such as 01:00:00 is not quoted: its parts belong together.
	var words []string
	for i, part := range parts {
		if i > 0 && !strings.Contains(part, "=") {
			words[len(words)-1] += ":" + part
			continue
		}
		words = append(words, part)
	}
	return keyvalue.ParseAll(words)
}

// loadedAccount is an account line of a dump while it is parsed.
type loadedAccount struct {
	settings
	account *status.AcctAccount
}

var loadedAccountWords = keyvalue.Table[*loadedAccount]{
	{Name: "Description", Least: 4, Set: func(c *loadedAccount, p keyvalue.Pair) error {
		c.account.Description = p.Value
		return nil
	}},
	{Name: "Organization", Least: 3, Set: func(c *loadedAccount, p keyvalue.Pair) error {
		c.account.Organization = p.Value
		return nil
	}},
	{Name: "Coordinators", Least: 4, Set: func(c *loadedAccount, p keyvalue.Pair) error {
		c.account.Coordinators = p.List()
		return nil
	}},
}

func (s *state) loadAccount(name, parent string, options []keyvalue.Pair) error {
	a := s.accounts[name]
	if a == nil {
		if err := checkName("Account", name); err != nil {
			return err
		}
		a = &status.AcctAccount{Name: name, Description: name, Organization: name, Version: s.originalVersion(name)}
		s.accounts[name] = a
	}
	setParent(a, parent)
	c := &loadedAccount{settings: settings{state: s}, account: a}
	for _, p := range options {
		known, err := loadedAccountWords.Set(c, p)
		if !known {
			err = c.parseOrRefuse(p)
		}
		if err != nil {
			return err
		}
	}
	a.Limits = status.Limits{}
	c.apply(&a.Limits, &a.QOS, &a.DefaultQOS)
	clearDefaultShare(&a.Limits)
	return nil
}

// originalVersion returns the version of the account's object, or "" if it has
// none. After "clean" the account is no longer in the state.
func (s *state) originalVersion(account string) string {
	for i := range s.original.Accounts {
		if a := &s.original.Accounts[i]; a.Name == account {
			return a.Version
		}
	}
	return ""
}

// clearDefaultShare removes the share that a dump writes for an association
// without one.
func clearDefaultShare(l *status.Limits) {
	if l.Share == 1 {
		l.Share = 0
	}
}

// loadedUser is a user line of a dump while it is parsed.
type loadedUser struct {
	settings
	user                      *status.AcctUser
	partition, defaultAccount string
}

var loadedUserWords = keyvalue.Table[*loadedUser]{
	{Name: "Partition", Least: 4, Set: func(c *loadedUser, p keyvalue.Pair) error {
		c.partition = p.Value
		return nil
	}},
	{Name: "DefaultAccount", Least: 8, Set: func(c *loadedUser, p keyvalue.Pair) error {
		c.defaultAccount = strings.ToLower(p.Value)
		return nil
	}},
	{Name: "AdminLevel", Least: 3, Set: func(c *loadedUser, p keyvalue.Pair) error {
		level, ok := parseAdminLevel(p.Value)
		if !ok {
			return invalidValue("AdminLevel", p)
		}
		c.user.AdminLevel = level
		return nil
	}},
	{Name: "WCKeys", Least: 3, Set: func(c *loadedUser, p keyvalue.Pair) error {
		c.user.WCKeys = p.List()
		return nil
	}},
}

func (s *state) loadUser(name, account string, options []keyvalue.Pair) error {
	u := s.users[name]
	if u == nil {
		return refuseUnknownUser(name)
	}
	c := &loadedUser{settings: settings{state: s}, user: u}
	for _, p := range options {
		known, err := loadedUserWords.Set(c, p)
		if !known {
			err = c.parseOrRefuse(p)
		}
		if err != nil {
			return err
		}
	}
	u.Accounts = keyvalue.Change(u.Accounts, keyvalue.Add, []string{account})
	if u.DefaultAccount == "" {
		u.DefaultAccount = account
	}
	if c.defaultAccount != "" {
		u.DefaultAccount = c.defaultAccount
	}
	loaded := status.AcctAssociation{Account: account, Partition: c.partition}
	c.apply(&loaded.Limits, &loaded.QOS, &loaded.DefaultQOS)
	clearDefaultShare(&loaded.Limits)
	// An association without settings needs no entry.
	hasSettings := c.partition != "" || loaded.DefaultQOS != "" || len(loaded.QOS) > 0 ||
		dumpOptions(&loaded.Limits, nil, "") != "Fairshare=1"
	if hasSettings || indexAssociation(u, account, c.partition) >= 0 {
		a := associationIn(u, account, c.partition)
		a.Limits, a.QOS, a.DefaultQOS = loaded.Limits, loaded.QOS, loaded.DefaultQOS
	}
	return nil
}
