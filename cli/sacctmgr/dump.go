package sacctmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// dumpHead is what a dump begins with.
const dumpHead = `# A cluster's accounts, users and limits, in the form of sacctmgr dump:
# Cluster - 'name':OPTION='value':...
# Parent - 'account'
# Account - 'account':OPTION='value':...   (below the last Parent)
# User - 'user':OPTION='value':...         (in the last Parent)
`

// dump writes the associations to a file, or to standard output.
func (o *Options) dump(ctx context.Context, words []string) error {
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	file, cluster := "", ""
	for _, x := range pairs(words) {
		switch {
		case oneOf(x.key, "File", 1) && x.key != "":
			file = x.value
		case x.key == "", oneOf(x.key, "Cluster", 1):
			cluster = x.value
		default:
			return o.explain(refusal(" Unknown option: " + x.text))
		}
	}
	switch {
	case cluster == "":
		return o.explain(refusal(" We need a cluster to dump."))
	case !strings.EqualFold(cluster, w.cluster):
		return o.explain(refusal(fmt.Sprintf(" Cluster %s doesn't exist.", cluster)))
	}
	text := dumpHead + w.dump()
	if file == "" {
		return o.p.Print(text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "cannot write the dump: "+err.Error())
	}
	return nil
}

func (w *world) dump() string {
	var b strings.Builder
	rootOptions := "Fairshare=1"
	if a := w.accounts[root]; a != nil {
		rootOptions = options(&a.Limits, a.QOS, a.DefaultQOS)
	}
	fmt.Fprintf(&b, "Cluster - '%s':%s\n", w.cluster, rootOptions)
	for _, parent := range w.accountNames() {
		var lines []string
		for _, name := range sortedNames(w.accounts) {
			if a := w.accounts[name]; name != root && w.parent(name) == parent {
				line := fmt.Sprintf("Account - '%s':Description='%s':Organization='%s':%s", name, a.Description, a.Organization, options(&a.Limits, a.QOS, a.DefaultQOS))
				if len(a.Coordinators) > 0 {
					line += ":Coordinators='" + strings.Join(a.Coordinators, ",") + "'"
				}
				lines = append(lines, line)
			}
		}
		for _, u := range w.members(parent) {
			for _, a := range associations(u, parent) {
				lines = append(lines, userLine(u, &a))
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "Parent - '%s'\n%s\n", parent, strings.Join(lines, "\n"))
		}
	}
	return b.String()
}

func userLine(u *status.AcctUser, a *status.AcctAssociation) string {
	line := fmt.Sprintf("User - '%s':", u.Name)
	if a.Partition != "" {
		line += "Partition='" + a.Partition + "':"
	}
	if u.DefaultAccount != "" {
		line += "DefaultAccount='" + u.DefaultAccount + "':"
	}
	if u.AdminLevel != "" && u.AdminLevel != "None" {
		line += "AdminLevel='" + u.AdminLevel + "':"
	}
	if len(u.WCKeys) > 0 {
		line += "WCKeys='" + strings.Join(u.WCKeys, ",") + "':"
	}
	return line + options(&a.Limits, a.QOS, a.DefaultQOS)
}

// options are limits and QOS as load reads them.
func options(l *status.Limits, qos []string, defaultQOS string) string {
	share, _ := limitText(l, "Share")
	out := []string{"Fairshare=" + share}
	for i := range limits {
		name := limits[i].names[0]
		if single[name] != "" {
			continue
		}
		if v, _ := limitText(l, name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	if l.Priority != 0 {
		out = append(out, fmt.Sprintf("Priority=%d", l.Priority))
	}
	if defaultQOS != "" {
		out = append(out, "DefaultQOS='"+defaultQOS+"'")
	}
	if len(qos) > 0 {
		out = append(out, "QOS='"+strings.Join(qos, ",")+"'")
	}
	return strings.Join(out, ":")
}

// load makes the associations those of a dump; "clean" takes away what is not
// in it. All of it is made, or nothing.
func (o *Options) load(ctx context.Context, words []string) error {
	file, clean := "", false
	for _, x := range pairs(words) {
		switch {
		case x.key == "" && oneOf(x.value, "clean", 5):
			clean = true
		case x.key == "", oneOf(x.key, "File", 1):
			file = x.value
		case oneOf(x.key, "Cluster", 1):
		default:
			fmt.Fprintf(o.p.Err, " Unknown option: %s\n", x.text)
			return failed()
		}
	}
	if file == "" {
		fmt.Fprintln(o.p.Err, " No filename given, specify one with file=''")
		return failed()
	}
	data, err := o.p.ReadFile(file)
	if err != nil {
		return o.explain(refusal(fmt.Sprintf(" Unable to read %q: %s", file, reason(err))))
	}
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	if err := w.load(string(data), clean); err != nil {
		return o.explain(err)
	}
	changes := w.changes()
	if len(changes) == 0 {
		o.tell(" Nothing new added.\n")
		return nil
	}
	for _, c := range changes {
		o.tell(" " + described(c) + "\n")
	}
	return o.commit(ctx, changes)
}

func described(c status.AcctChange) string {
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

// load takes over the lines of a dump.
func (w *world) load(text string, clean bool) error {
	if clean {
		for name := range w.accounts {
			delete(w.accounts, name)
		}
		for _, u := range w.users {
			u.Accounts, u.Associations, u.DefaultAccount = nil, nil, ""
		}
	}
	parent, n := root, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, ok := strings.Cut(line, "-")
		if !ok {
			return refusal(fmt.Sprintf(" line(%d) cannot be read: %s", n, line))
		}
		words := fields(strings.TrimSpace(rest))
		name := words[0].value
		err := error(nil)
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "cluster", "machine":
			if a := w.accounts[root]; a != nil || len(words) > 1 && words[1].text != "Fairshare=1" {
				err = w.loadAccount(root, "", words[1:])
			}
		case "parent":
			if parent = strings.ToLower(name); !w.hasAccount(parent) {
				err = refusal(fmt.Sprintf("the account '%s' has not been created by a line before", parent))
			}
		case "account", "project":
			err = w.loadAccount(strings.ToLower(name), parent, words[1:])
		case "user":
			err = w.loadUser(name, parent, words[1:])
		default:
			err = refusal("misformatted line: " + line)
		}
		if err != nil {
			return refusal(fmt.Sprintf(" line(%d) %s", n, strings.TrimSpace(err.Error())))
		}
	}
	return nil
}

// fields cuts 'name':A=b:C='d:e' at the colons outside of quotes.
func fields(text string) []pair {
	quoted := false
	parts := strings.FieldsFunc(text, func(r rune) bool {
		if r == '\'' || r == '"' {
			quoted = !quoted
		}
		return r == ':' && !quoted
	})
	if len(parts) == 0 {
		parts = []string{""}
	}
	// A time such as 01:00:00 is not quoted.
	var whole []string
	for i, p := range parts {
		if i > 0 && !strings.Contains(p, "=") {
			whole[len(whole)-1] += ":" + p
			continue
		}
		whole = append(whole, p)
	}
	return pairs(whole)
}

func (w *world) loadAccount(name, parent string, list []pair) error {
	a := w.accounts[name]
	if a == nil {
		if err := checkName("Account", name); err != nil {
			return err
		}
		a = &status.AcctAccount{Name: name, Description: name, Organization: name}
		for i := range w.before.Accounts {
			if w.before.Accounts[i].Name == name {
				a.Version = w.before.Accounts[i].Version
			}
		}
		w.accounts[name] = a
	}
	if a.Parent = parent; parent == root {
		a.Parent = ""
	}
	p, c := &plan{world: w}, &common{}
	for _, x := range list {
		switch {
		case oneOf(x.key, "Description", 4):
			a.Description = x.value
		case oneOf(x.key, "Organization", 3):
			a.Organization = x.value
		case oneOf(x.key, "Coordinators", 4):
			a.Coordinators = x.list()
		default:
			if known, err := c.set(p, x); err != nil || !known {
				return orUnknown(err, x)
			}
		}
	}
	a.Limits = status.Limits{}
	c.apply(&a.Limits, &a.QOS, &a.DefaultQOS)
	unshared(&a.Limits)
	return nil
}

// unshared makes the default share what it is where nothing was said.
func unshared(l *status.Limits) {
	if l.Share == 1 {
		l.Share = 0
	}
}

func (w *world) loadUser(name, parent string, list []pair) error {
	u := w.users[name]
	if u == nil {
		return refusal(noUser(name))
	}
	p, c := &plan{world: w}, &common{}
	partition := ""
	for _, x := range list {
		switch {
		case oneOf(x.key, "Partition", 4):
			partition = x.value
		case oneOf(x.key, "DefaultAccount", 8):
			c.defaultAccount = strings.ToLower(x.value)
		case oneOf(x.key, "AdminLevel", 3):
			l, ok := level(x.value)
			if !ok {
				return invalid("AdminLevel", x)
			}
			u.AdminLevel = l
		case oneOf(x.key, "WCKeys", 3):
			u.WCKeys = x.list()
		default:
			if known, err := c.set(p, x); err != nil || !known {
				return orUnknown(err, x)
			}
		}
	}
	if !slices.Contains(u.Accounts, parent) {
		u.Accounts = append(u.Accounts, parent)
	}
	if u.DefaultAccount == "" {
		u.DefaultAccount = parent
	}
	if c.defaultAccount != "" {
		u.DefaultAccount = c.defaultAccount
	}
	var l status.Limits
	var qos []string
	def := ""
	c.apply(&l, &qos, &def)
	unshared(&l)
	known := slices.ContainsFunc(u.Associations, func(a status.AcctAssociation) bool { return a.Account == parent && a.Partition == partition })
	special := partition != "" || def != "" || len(qos) > 0 || options(&l, nil, "") != "Fairshare=1"
	if known || special {
		x := assoc(u, parent, partition)
		x.Limits, x.QOS, x.DefaultQOS = l, qos, def
	}
	return nil
}

// reason is the system's text for why a file cannot be read.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	case errors.As(err, &errno):
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}
