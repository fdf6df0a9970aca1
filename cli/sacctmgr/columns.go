package sacctmgr

import (
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// column is a field of a listing, with the names by which format= selects it.
type column struct {
	names []string
	format.Field
}

func col(width int, header string, names ...string) column {
	return column{append(names, header), format.Field{Name: header, Width: width}}
}

// columns are those of the listings of accounts, users, associations, QOS and
// the cluster, with Slurm's widths.
var columns = []column{
	col(10, "Cluster"), col(10, "Account", "Name"), col(10, "User"), col(10, "Partition"),
	col(9, "Share", "FairShare", "Shares"), col(10, "Priority"),
	col(7, "GrpJobs"), col(13, "GrpTRES"), col(9, "GrpSubmit", "GrpSubmitJobs"), col(11, "GrpWall"),
	col(13, "GrpTRESMins"),
	col(7, "MaxJobs"), col(13, "MaxTRES", "MaxTRESPerJob", "MaxTRESPJ"), col(14, "MaxTRESPerNode", "MaxTRESPN"),
	col(9, "MaxSubmit", "MaxSubmitJobs"), col(11, "MaxWall", "MaxWallDurationPerJob"),
	col(13, "MaxTRESMins", "MaxTRESMinsPerJob"),
	col(20, "QOS", "QosLevel"), col(9, "Def QOS", "DefaultQOS", "DefQOS"), col(13, "GrpTRESRunMins"),
	col(20, "Descr", "Description"), col(20, "Org", "Organization"), col(10, "ParentName", "Par Name"),
	col(20, "Coord Accounts", "Coordinators"),
	col(10, "Def Acct", "DefaultAccount", "DefAcct"), col(9, "Admin", "AdminLevel"),
	col(8, "MaxNodes"), col(8, "MaxCPUs"), col(11, "MaxCPUMins"), col(8, "GrpNodes"), col(8, "GrpCPUs"),
	col(7, "GrpMem"),
	col(11, "GrpCPUMins"), col(10, "Def WCKey", "DefaultWCKey"),
	col(10, "Name"), col(10, "GraceTime"), col(10, "Preempt"), col(19, "PreemptExemptTime"), col(11, "PreemptMode"),
	col(20, "Flags"), col(10, "UsageThres", "UsageThreshold"), col(11, "UsageFactor"),
	col(13, "MaxTRESPU", "MaxTRESPerUser"), col(9, "MaxJobsPU", "MaxJobsPerUser"),
	col(11, "MaxSubmitPU", "MaxSubmitJobsPerUser"),
	col(13, "MaxTRESPA", "MaxTRESPerAccount"), col(9, "MaxJobsPA", "MaxJobsPerAccount"),
	col(11, "MaxSubmitPA", "MaxSubmitJobsPerAccount"), col(13, "MinTRES", "MinTRESPerJob"),
	col(15, "ControlHost"), col(12, "ControlPort"), col(5, "RPC"), col(10, "WCKey"), col(6, "ID"), col(8, "Type"),
	col(15, "TRESName"), col(4, "UID"),
	col(10, "Server"), col(6, "Count"), col(11, "% Allocated", "Allocated"), col(10, "ServerType"),
	col(10, "Federation"),
	col(40, "Problem"), col(20, "Features"), col(12, "FedState"),
}

// The columns of the listings without format=.
const (
	assocColumns = "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins," +
		"MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"
	userColumns      = "User,DefaultAccount,Admin"
	userAssocColumns = ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins," +
		"QOS,DefaultQOS"
	accountColumns      = "Account,Descr,Org"
	accountAssocColumns = ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmit,GrpWall,GrpCPUMins," +
		"MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	qosColumns = "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor," +
		"GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall," +
		"MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES"
	clusterColumns = "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall," +
		"QOS,DefaultQOS"
	wckeyColumns = "WCKey,Cluster,User"
)

// row is one line of a listing: values by the header of a column, and limits,
// which have the columns that values do not name.
type row struct {
	values map[string]string
	limits *status.Limits
}

func (r *row) value(header string) string {
	if v, ok := r.values[header]; ok {
		return v
	}
	if r.limits != nil {
		if v, ok := limitText(r.limits, header); ok {
			return v
		}
	}
	return ""
}

// selection is the columns of a listing: their indexes, and their fields with
// the widths of format=.
type selection struct {
	columns []column
	at      []int
	fields  []format.Field
}

// selectColumns parses a format: names of columns or prefixes of them.
func selectColumns(columns []column, text string) (*selection, error) {
	s := &selection{columns: columns}
	for item := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" {
			continue
		}
		k := findColumn(columns, name)
		if k < 0 {
			return nil, refusef("Unknown field '%s'", strings.ToLower(name))
		}
		f := columns[k].Field
		if _, one, _ := format.ParseFields([]format.Field{f}, strings.Replace(item, name, f.Name, 1)); len(one) == 1 {
			f = one[0]
		}
		s.at, s.fields = append(s.at, k), append(s.fields, f)
	}
	return s, nil
}

// findColumn returns the index of the column whose name is or begins with name,
// or -1. The whole name "Name" is that of a QOS.
func findColumn(columns []column, name string) int {
	found := -1
	for i := range columns {
		for _, n := range columns[i].names {
			if strings.EqualFold(n, name) && (n != "Name" || columns[i].Name != "Account") {
				return i
			}
			if found < 0 && keyvalue.Abbreviates(name, n, 1) {
				found = i
			}
		}
	}
	return found
}

// print prints rows in the selected columns.
func (o *Options) print(s *selection, rows []row) error {
	b := format.AppendFieldHeader(nil, s.fields, o.style)
	values := make([]string, len(s.fields))
	for i := range rows {
		for k, c := range s.at {
			values[k] = rows[i].value(s.columns[c].Name)
		}
		b = format.AppendFields(b, s.fields, values, o.style)
	}
	_, err := o.p.Out.Write(b)
	return err
}
