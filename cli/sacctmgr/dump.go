package sacctmgr

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// dumpHeader is the first lines of a dump.
const dumpHeader = `# A cluster's accounts, users and limits, in the form of sacctmgr dump:
# Cluster - 'name':OPTION='value':...
# Parent - 'account'
# Account - 'account':OPTION='value':...   (below the last Parent)
# User - 'user':OPTION='value':...         (in the last Parent)
`

// dump writes the associations to a file, or to standard output.
func (o *Options) dump(ctx context.Context, words []string) error {
	s, err := o.readState(ctx)
	if err != nil {
		return err
	}
	file, cluster := "", ""
	for _, p := range keyvalue.ParseAll(words) {
		switch {
		case keyvalue.Abbreviates(p.Key, "File", 1):
			file = p.Value
		case p.Key == "", keyvalue.Abbreviates(p.Key, "Cluster", 1):
			cluster = p.Value
		default:
			return o.explain(&refusal{option: p.Text})
		}
	}
	switch {
	case cluster == "":
		return o.explain(refusef(" We need a cluster to dump."))
	case !strings.EqualFold(cluster, s.cluster):
		return o.explain(refusef(" Cluster %s doesn't exist.", cluster))
	}
	text := dumpHeader + s.dump()
	if file == "" {
		return o.p.Print(text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "cannot write the dump: "+err.Error())
	}
	return nil
}

// dump returns the lines of a dump.
func (s *state) dump() string {
	var b strings.Builder
	rootOptions := "Fairshare=1"
	if a := s.accounts[rootAccount]; a != nil {
		rootOptions = dumpOptions(&a.Limits, a.QOS, a.DefaultQOS)
	}
	fmt.Fprintf(&b, "Cluster - '%s':%s\n", s.cluster, rootOptions)
	for _, parent := range s.accountNames() {
		var lines []string
		for _, name := range sortedNames(s.accounts) {
			if name != rootAccount && s.parent(name) == parent {
				lines = append(lines, accountLine(s.accounts[name]))
			}
		}
		for _, u := range s.members(parent) {
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

func accountLine(a *status.AcctAccount) string {
	line := fmt.Sprintf("Account - '%s':Description='%s':Organization='%s':%s",
		a.Name, a.Description, a.Organization, dumpOptions(&a.Limits, a.QOS, a.DefaultQOS))
	if len(a.Coordinators) > 0 {
		line += ":Coordinators='" + strings.Join(a.Coordinators, ",") + "'"
	}
	return line
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
	return line + dumpOptions(&a.Limits, a.QOS, a.DefaultQOS)
}

// dumpOptions returns limits and QOS in the form that load parses.
func dumpOptions(l *status.Limits, qos []string, defaultQOS string) string {
	out := []string{"Fairshare=" + shareText(l.Share)}
	for i := range limits {
		x := &limits[i]
		if x.only != "" {
			continue
		}
		if v := x.text(l); v != "" {
			out = append(out, x.names[0]+"="+v)
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
