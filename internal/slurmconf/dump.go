package slurmconf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/value"
)

// Dump has the contents of a file that sacctmgr dump wrote.
type Dump struct {
	Cluster  string
	Accounts []v1alpha1.Account
	// Users in the order of their first line, without ids, groups and home directories,
	// which a dump does not have.
	Users    []v1alpha1.User
	Warnings []Warning
}

// dumpParser is the state of one ParseDump.
type dumpParser struct {
	dump   Dump
	file   string
	line   int
	parent string

	coordinators []coordinator
}

// coordinator is a user that a line makes coordinator of an account, which a later line
// may define.
type coordinator struct {
	line          int
	user, account string
}

// ParseDump parses the output of sacctmgr dump: Cluster, Parent, Account and User lines
// such as "User - 'name':Key=value:...". The error is an *Error.
func ParseDump(file string, data []byte) (*Dump, error) {
	p := &dumpParser{file: file, parent: "root"}
	for text := range strings.SplitSeq(string(data), "\n") {
		p.line++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		kind, rest, found := strings.Cut(text, "-")
		if !found {
			return nil, p.errorf("%q is not a line of a dump", text)
		}
		name, options, err := p.entry(strings.TrimSpace(rest))
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "cluster", "machine":
			p.dump.Cluster = name
			p.cluster(options)
		case "parent":
			err = p.setParent(name)
		case "account", "project":
			err = p.account(name, options)
		case "user":
			err = p.user(name, options)
		default:
			err = p.errorf("%q is not a line of a dump", text)
		}
		if err != nil {
			return nil, err
		}
	}
	p.setCoordinators()
	return &p.dump, nil
}

// cluster warns about settings of the whole cluster that are not the default.
func (p *dumpParser) cluster(options [][2]string) {
	for _, kv := range options {
		switch key := strings.ToLower(kv[0]); {
		case unset(kv[1]),
			key == "fairshare" && kv[1] == "1",
			key == "qos" && kv[1] == "normal",
			key == "defaultqos" && kv[1] == "normal":
		default:
			p.warn(kv[0], "not supported for the whole cluster; set it on accounts or on a QOS")
		}
	}
}

// setParent sets the account that the following lines belong to.
func (p *dumpParser) setParent(name string) error {
	if name != "root" && p.accountNamed(name) == nil {
		return p.errorf("the account %s is not in the dump", name)
	}
	p.parent = name
	return nil
}

func (p *dumpParser) accountNamed(name string) *v1alpha1.Account {
	for i := range p.dump.Accounts {
		if a := &p.dump.Accounts[i]; a.Name == v1alpha1.ObjectNamed(name) {
			return a
		}
	}
	return nil
}

// unset reports whether a value is empty or -1, Slurm's values for no limit.
func unset(v string) bool { return v == "" || v == "-1" }

func (p *dumpParser) errorf(format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Text: fmt.Sprintf(format, args...)}
}

func (p *dumpParser) warn(key, format string, args ...any) {
	p.dump.Warnings = append(
		p.dump.Warnings,
		Warning{File: p.file, Line: p.line, Key: key, Text: fmt.Sprintf(format, args...)},
	)
}

func (p *dumpParser) account(name string, options [][2]string) error {
	if p.accountNamed(name) != nil {
		p.warn(name, "duplicate account; line ignored")
		return nil
	}
	a := v1alpha1.Account{}
	if a.Name = v1alpha1.ObjectNamed(name); a.Name != name {
		a.Annotations = map[string]string{v1alpha1.NameAnnotation: name}
	}
	if p.parent != "root" {
		a.Spec.Parent = p.parent
	}
	for _, kv := range options {
		if unset(kv[1]) {
			continue
		}
		switch strings.ToLower(kv[0]) {
		case "description":
			a.Spec.Description = kv[1]
		case "organization":
			a.Spec.Organization = kv[1]
		case "defaultqos":
			a.Spec.DefaultQOS = kv[1]
		case "qos", "qoslevel":
			a.Spec.QOS = list(kv[1])
		default:
			if err := p.limit(&a.Spec.Limits, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	p.dump.Accounts = append(p.dump.Accounts, a)
	return nil
}

// list splits a,b and skips empty elements.
func list(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}

func (p *dumpParser) user(name string, options [][2]string) error {
	if len(validation.IsDNS1123Label("user-"+name)) > 0 {
		p.warn(name, "not a valid name in Kubernetes; user ignored")
		return nil
	}
	at := slices.IndexFunc(p.dump.Users, func(u v1alpha1.User) bool { return u.Name == name })
	if at < 0 {
		at = len(p.dump.Users)
		u := v1alpha1.User{}
		u.Name, u.Spec.Namespace = name, "user-"+name
		p.dump.Users = append(p.dump.Users, u)
	}
	u := &p.dump.Users[at]
	if p.parent != "root" && !slices.Contains(u.Spec.Accounts, p.parent) {
		u.Spec.Accounts = append(u.Spec.Accounts, p.parent)
	}
	assoc := v1alpha1.Association{Account: p.parent}
	special := false
	for _, kv := range options {
		if unset(kv[1]) {
			continue
		}
		switch strings.ToLower(kv[0]) {
		case "defaultaccount":
			if kv[1] != "root" {
				u.Spec.DefaultAccount = kv[1]
			}
		case "adminlevel":
			u.Spec.AdminLevel = kv[1]
		case "defaultwckey":
			u.Spec.DefaultWCKey = kv[1]
		case "wckeys":
			u.Spec.WCKeys = list(kv[1])
		case "coordinator":
			p.coordinator(name, kv[1])
		case "defaultqos":
			assoc.DefaultQOS, special = kv[1], true
		case "qos", "qoslevel":
			assoc.QOS, special = list(kv[1]), true
		case "partition":
			assoc.Partition, special = kv[1], true
		case "fairshare", "shares":
			if kv[1] == "1" {
				continue // the default
			}
			fallthrough
		default:
			special = true
			if err := p.limit(&assoc.Limits, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	switch {
	case special && p.parent != "root":
		u.Spec.Associations = append(u.Spec.Associations, assoc)
	case special && name != "root":
		p.warn(name, "jobs cannot run in the account root; limits of its users ignored")
	}
	return nil
}

// coordinator records that a user coordinates the accounts in a list.
func (p *dumpParser) coordinator(name, accounts string) {
	for _, account := range list(accounts) {
		p.coordinators = append(p.coordinators, coordinator{p.line, name, account})
	}
}

// setCoordinators sets the coordinators of the accounts.
func (p *dumpParser) setCoordinators() {
	for _, c := range p.coordinators {
		a := p.accountNamed(c.account)
		if a == nil {
			p.line = c.line
			p.warn("Coordinator", "the account %s is not in the dump", c.account)
			continue
		}
		if !slices.Contains(a.Spec.Coordinators, c.user) {
			a.Spec.Coordinators = append(a.Spec.Coordinators, c.user)
		}
	}
}

// limit sets one limit of an association.
func (p *dumpParser) limit(l *v1alpha1.Limits, key, v string) error {
	counts := map[string]*int32{
		"maxjobs":               &l.MaxJobs,
		"maxsubmitjobs":         &l.MaxSubmitJobs,
		"grpjobs":               &l.GrpJobs,
		"grpsubmitjobs":         &l.GrpSubmitJobs,
		"maxwalldurationperjob": &l.MaxWall,
		"maxwall":               &l.MaxWall,
		"grpwall":               &l.GrpWall,
	}
	tres := map[string]*map[string]int64{
		"grptres":           &l.GrpTRES,
		"maxtresperjob":     &l.MaxTRES,
		"maxtres":           &l.MaxTRES,
		"grptresmins":       &l.GrpTRESMins,
		"grptresrunmins":    &l.GrpTRESRunMins,
		"maxtresminsperjob": &l.MaxTRESMins,
		"maxtresmins":       &l.MaxTRESMins,
		"maxtrespernode":    &l.MaxTRESPerNode,
	}
	name := strings.ToLower(key)
	switch {
	case name == "fairshare" || name == "shares":
		if strings.EqualFold(v, "parent") {
			p.warn(key, "Fairshare=parent is not supported; the default is used")
			return nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return p.errorf("%s=%s is not a number", key, v)
		}
		l.Share = n
	case name == "priority":
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return p.errorf("%s=%s is not a number", key, v)
		}
		l.Priority = n
	case counts[name] != nil:
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return p.errorf("%s=%s is not a number", key, v)
		}
		*counts[name] = int32(n)
	case tres[name] != nil:
		return p.tres(tres[name], key, v)
	default:
		p.warn(key, "not supported; ignored")
	}
	return nil
}

// tres parses a list such as cpu=4,gres/gpu=2 into to, with memory in MiB. It skips
// elements without a limit (-1).
func (p *dumpParser) tres(to *map[string]int64, key, v string) error {
	for _, part := range list(v) {
		name, text, found := strings.Cut(part, "=")
		if found && unset(text) {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if name == "mem" && err != nil {
			n, err = value.Megabytes(text)
		}
		if !found || err != nil || n < 0 {
			return p.errorf("%s=%s: invalid limit %q", key, v, part)
		}
		if *to == nil {
			*to = map[string]int64{}
		}
		(*to)[name] = n
	}
	return nil
}
