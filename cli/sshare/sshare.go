// Package sshare shows shares, usage and fair share of accounts and users.
package sshare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the access to a cluster that sshare needs.
type Cluster interface {
	Shares(ctx context.Context) (*status.ShareList, error)
	User() string
	// Cluster returns the name of the cluster.
	Cluster(ctx context.Context, names []string) (string, error)
}

// Options are the dependencies and options of sshare.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
}

// New returns the command. connect is called once, after the command line has been
// parsed.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// fields are the columns of sshare, with Slurm's widths.
var fields = []format.Field{
	{
		Name:  "Account",
		Width: 20,
		Left:  true,
	},
	{Name: "Cluster", Width: 10},
	{Name: "EffectvUsage", Width: 13},
	{Name: "FairShare", Width: 10},
	{
		Name:  "GrpTRESMins",
		Width: 30,
	},
	{Name: "GrpTRESRaw", Width: 30},
	{Name: "ID", Width: 6},
	{Name: "LevelFS", Width: 10},
	{
		Name:  "NormShares",
		Width: 11,
	},
	{Name: "NormUsage", Width: 11},
	{Name: "Partition", Width: 12},
	{Name: "RawShares", Width: 10},
	{Name: "RawUsage", Width: 11},
	{Name: "TRESRunMins", Width: 30},
	{Name: "User", Width: 10},
}

const (
	usual = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
	long  = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins"
)

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	checks := jobs.ClusterChecks(ctx, "clusters", o.connect)
	v, _, err := option.Sshare.Checked(checks).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return err
	}
	if v.Has("helpformat") {
		return o.p.Print(helpFormat())
	}
	text := usual
	switch {
	case v.Has("format"):
		text = v.Joined("format")
	case v.Has("long"):
		text = long
	}
	if v.Has("partition") && !v.Has("format") {
		text = strings.Replace(text, "User,", "User,Partition,", 1)
	}
	at, chosen, bad := format.ParseFields(fields, format.WithoutRepeated(text))
	if bad != "" {
		return slurmerr.Newf(slurmerr.Refused, "Invalid field requested: \"%s\"", strings.ToLower(bad))
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	users, err := o.users(v, c)
	if err != nil {
		return err
	}
	if v.Has("verbose") {
		o.reportRequest(v, users)
	}
	list, err := c.Shares(ctx)
	if err != nil {
		return err
	}
	cluster, err := clusterName(ctx, c, chosen)
	if err != nil {
		return err
	}
	style := format.FieldStyle{NoHeader: v.Has("noheader") || v.Has("no-header")}
	if last := v.Last("parsable", "parsable2"); last != "" {
		style.Delimiter, style.Ending = "|", last == "parsable"
	}
	var b []byte
	if name := o.p.Env(kube.EnvCluster); name != "" { // with --noheader, too
		b = append(b, "CLUSTER: "+name+"\n"...)
	}
	b = format.AppendFieldHeader(b, chosen, style)
	values := make([]string, len(at))
	for _, s := range wanted(v, users, list.Items) {
		for i, k := range at {
			if values[i] = value(fields[k].Name, &s); fields[k].Name == "Cluster" {
				values[i] = cluster
			}
		}
		b = format.AppendFields(b, chosen, values, style)
	}
	if _, err := o.p.Out.Write(b); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// clusterName returns the name of the cluster if one of the columns has it.
func clusterName(ctx context.Context, c Cluster, columns []format.Field) (string, error) {
	if !slices.ContainsFunc(columns, func(f format.Field) bool { return f.Name == "Cluster" }) {
		return "", nil
	}
	return c.Cluster(ctx, nil)
}

func helpFormat() string {
	var b strings.Builder
	for i, f := range fields {
		fmt.Fprintf(&b, "%-17s", f.Name)
		if i%4 == 3 || i == len(fields)-1 {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
	}
	return b.String()
}

// reportRequest prints the users and accounts whose shares are shown.
func (o *Options) reportRequest(v *option.Values, users []string) {
	for _, list := range []struct {
		title string
		names []string
	}{{"Users", users}, {"Accounts", v.All("accounts")}} {
		if len(list.names) == 0 {
			list.names = []string{"all"}
		}
		fmt.Fprintf(o.p.Err, "%s requested:\n", list.title)
		for _, name := range list.names {
			fmt.Fprintf(o.p.Err, "\t: %s\n", name)
		}
	}
}

// users returns the users whose shares are shown: those of --users, otherwise the caller.
// It returns nil if the shares of all users are shown.
func (o *Options) users(v *option.Values, c Cluster) ([]string, error) {
	users := v.All("users")
	if len(users) > 0 && !v.Precedes("users", "all") { // the last of the two counts, as in Slurm
		return o.userNames(users)
	}
	if v.Has("all") {
		return nil, nil
	}
	me := c.User()
	if me == "" && o.p.UID == 0 {
		me = "root"
	}
	return []string{me}, nil
}

// userNames returns the users with names in place of numbers.
func (o *Options) userNames(users []string) ([]string, error) {
	var names []string
	for _, u := range users {
		if strings.Trim(u, "0123456789") != "" {
			names = append(names, u)
			continue
		}
		name := ""
		if strings.Trim(u, "0") == "" {
			name = "root"
		} else if o.p.Getent != nil {
			line, _ := o.p.Getent("passwd", u)
			name, _, _ = strings.Cut(line, ":")
		}
		if name == "" {
			return nil, &slurmerr.Error{Code: 1, Before: []string{"Invalid user id: " + u}}
		}
		names = append(names, name)
	}
	return names, nil
}

// wanted returns the requested lines: by default every account and the caller. users nil:
// all.
func wanted(v *option.Values, users []string, all []status.Share) []status.Share {
	accounts := v.All("accounts")
	if v.Has("accounts") && len(accounts) == 0 {
		return nil
	}
	only := v.Has("Users")
	least := -1
	var out []status.Share
	for _, s := range all {
		switch {
		case len(accounts) > 0 && !slices.ContainsFunc(accounts,
			func(a string) bool { return strings.EqualFold(a, s.Account) }):
			continue
		case s.User == "" && only, s.User != "" && users != nil && !slices.Contains(users, s.User):
			continue
		}
		if least < 0 || s.Depth < least {
			least = s.Depth
		}
		out = append(out, s)
	}
	for i := range out {
		if out[i].Depth -= least; only {
			out[i].Depth = 0
		}
	}
	return out
}

func value(name string, s *status.Share) string {
	switch name {
	case "Account":
		return strings.Repeat(" ", s.Depth) + s.Account
	case "User":
		return s.User
	case "RawShares":
		return shares(s)
	case "NormShares":
		return decimal(s.NormShares)
	case "RawUsage":
		return strconv.FormatFloat(s.RawUsage, 'f', 0, 64)
	case "NormUsage":
		if s.Account == "root" && s.User == "" {
			return ""
		}
		return decimal(s.NormUsage)
	case "EffectvUsage":
		return decimal(s.EffectvUse)
	case "FairShare":
		if s.User == "" {
			return ""
		}
		return decimal(s.FairShare)
	case "LevelFS":
		return levelFS(s)
	case "GrpTRESMins":
		return tres(s.GrpTRESMins, false)
	case "TRESRunMins":
		return tres(s.RunMins, true)
	}
	return ""
}

func shares(s *status.Share) string {
	switch {
	case s.Account == "root" && s.User == "":
		return ""
	case s.Parent:
		return "parent"
	}
	return strconv.FormatInt(s.RawShares, 10)
}

func levelFS(s *status.Share) string {
	switch {
	case s.Account == "root" && s.User == "":
		return ""
	case s.LevelFS < 0:
		return "inf"
	}
	return decimal(s.LevelFS)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }

// tres lists amounts in Slurm's order; usual: the TRES of every cluster even if they are 0.
func tres(m map[string]int64, usual bool) string {
	var out []string
	seen := map[string]bool{}
	for _, name := range []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu"} {
		seen[name] = true
		if n, ok := m[name]; ok || usual {
			out = append(out, fmt.Sprintf("%s=%d", name, n))
		}
	}
	var rest []string
	for name, n := range m {
		if !seen[name] {
			rest = append(rest, fmt.Sprintf("%s=%d", name, n))
		}
	}
	slices.Sort(rest)
	return strings.Join(append(out, rest...), ",")
}
