package slurmconf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Dump is what a file of sacctmgr dump says.
type Dump struct {
	Cluster  string
	Accounts []v1alpha1.Account
	// Users in the order of their first line; numbers, groups and folders,
	// which a dump does not tell, are zero.
	Users    []v1alpha1.User
	Warnings []Warning
}

// dumpParser is a run of ParseDump.
type dumpParser struct {
	dump   Dump
	file   string
	line   int
	parent string
}

// ParseDump reads what sacctmgr dump wrote: lines of Cluster, Parent, Account
// and User, each with 'name':Key=value:... The error is an *Error.
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
			return nil, p.errorf("%q is no line of a dump", text)
		}
		name, options, err := p.entry(strings.TrimSpace(rest))
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "cluster", "machine":
			p.dump.Cluster = name
		case "parent":
			p.parent = name
		case "account", "project":
			err = p.account(name, options)
		case "user":
			err = p.user(name, options)
		default:
			err = p.errorf("%q is no line of a dump", text)
		}
		if err != nil {
			return nil, err
		}
	}
	return &p.dump, nil
}

func (p *dumpParser) errorf(format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Text: fmt.Sprintf(format, args...)}
}

func (p *dumpParser) warn(key, format string, args ...any) {
	p.dump.Warnings = append(p.dump.Warnings, Warning{File: p.file, Line: p.line, Key: key, Text: fmt.Sprintf(format, args...)})
}

// entry splits 'name':Key='value':Key=value. Quotes keep colons.
func (p *dumpParser) entry(text string) (name string, options [][2]string, err error) {
	var parts []string
	start, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ':' && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	if quoted {
		return "", nil, p.errorf("a quote is not closed")
	}
	parts = append(parts, text[start:])
	name = strings.Trim(parts[0], "'")
	for _, part := range parts[1:] {
		if part == "" {
			continue
		}
		key, v, found := strings.Cut(part, "=")
		if !found {
			return "", nil, p.errorf("%q has no value", part)
		}
		options = append(options, [2]string{key, strings.Trim(v, "'")})
	}
	return name, options, nil
}

func (p *dumpParser) account(name string, options [][2]string) error {
	a := v1alpha1.Account{}
	if a.Name = v1alpha1.ObjectNamed(name); a.Name != name {
		a.Annotations = map[string]string{v1alpha1.NameAnnotation: name}
	}
	if p.parent != "root" {
		a.Spec.Parent = p.parent
	}
	for _, kv := range options {
		switch strings.ToLower(kv[0]) {
		case "description":
			a.Spec.Description = kv[1]
		case "organization":
			a.Spec.Organization = kv[1]
		case "defaultqos":
			a.Spec.DefaultQOS = kv[1]
		case "qos", "qoslevel":
			a.Spec.QOS = strings.Split(strings.Trim(kv[1], ","), ",")
		default:
			if err := p.limit(&a.Spec.Limits, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	p.dump.Accounts = append(p.dump.Accounts, a)
	return nil
}

func (p *dumpParser) user(name string, options [][2]string) error {
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
			u.Spec.WCKeys = strings.Split(kv[1], ",")
		case "coordinator":
			p.coordinator(name, kv[1])
		case "defaultqos":
			assoc.DefaultQOS, special = kv[1], true
		case "qos", "qoslevel":
			assoc.QOS, special = strings.Split(strings.Trim(kv[1], ","), ","), true
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
	if special && p.parent != "root" {
		u.Spec.Associations = append(u.Spec.Associations, assoc)
	}
	return nil
}

// coordinator makes the user one of the accounts named.
func (p *dumpParser) coordinator(name, accounts string) {
	for account := range strings.SplitSeq(accounts, ",") {
		for i := range p.dump.Accounts {
			if a := &p.dump.Accounts[i]; a.Name == v1alpha1.ObjectNamed(account) {
				a.Spec.Coordinators = append(a.Spec.Coordinators, name)
			}
		}
	}
}

// limit reads a limit of an association.
func (p *dumpParser) limit(l *v1alpha1.Limits, key, v string) error {
	counts := map[string]*int32{"maxjobs": &l.MaxJobs, "maxsubmitjobs": &l.MaxSubmitJobs, "grpjobs": &l.GrpJobs, "grpsubmitjobs": &l.GrpSubmitJobs,
		"maxwalldurationperjob": &l.MaxWall, "maxwall": &l.MaxWall, "grpwall": &l.GrpWall}
	tres := map[string]*map[string]int64{"grptres": &l.GrpTRES, "maxtresperjob": &l.MaxTRES, "maxtres": &l.MaxTRES, "grptresmins": &l.GrpTRESMins,
		"grptresrunmins": &l.GrpTRESRunMins, "maxtresminsperjob": &l.MaxTRESMins, "maxtresmins": &l.MaxTRESMins, "maxtrespernode": &l.MaxTRESPerNode}
	name := strings.ToLower(key)
	switch {
	case name == "fairshare" || name == "shares":
		if strings.EqualFold(v, "parent") {
			p.warn(key, "shares of the parent are not taken over; the default is used")
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
		p.warn(key, "there is no counterpart of it here")
	}
	return nil
}

// tres reads cpu=4,gres/gpu=2; memory is in MiB.
func (p *dumpParser) tres(to *map[string]int64, key, v string) error {
	for part := range strings.SplitSeq(v, ",") {
		name, text, found := strings.Cut(part, "=")
		n, err := strconv.ParseInt(strings.TrimRight(text, "MG"), 10, 64)
		if !found || err != nil {
			return p.errorf("%s=%s: %q is no limit", key, v, part)
		}
		if strings.HasSuffix(text, "G") {
			n <<= 10
		}
		if *to == nil {
			*to = map[string]int64{}
		}
		(*to)[name] = n
	}
	return nil
}
