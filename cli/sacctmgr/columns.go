package sacctmgr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// column is a field of a listing, with the names by which format= selects it.
type column struct {
	names []columnName
	format.Field
}

// columnName is a name of a column; least letters are enough of it.
type columnName struct {
	text  string
	least int
}

// col returns a column; each name is NAME/LEAST. If none is, a letter is enough of the names
// and of the header.
func col(width int, header string, names ...string) column {
	c := column{Field: format.Field{Name: header, Width: width}}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "/") }) {
		names = append(names, header)
	}
	for _, n := range names {
		text, least, _ := strings.Cut(n, "/")
		count, err := strconv.Atoi(least)
		if err != nil {
			count = 1
		}
		c.names = append(c.names, columnName{text, count})
	}
	return c
}

// columns are those of the listings of accounts, users, associations, QOS and the cluster,
// with Slurm's widths, and with the letters of each name that are enough of it. Some have no
// values here.
var columns = []column{
	col(10, "Account", "Account/3"), col(20, "Action", "Action/4"), col(10, "Actor", "Actor/4"),
	col(9, "Admin", "AdminLevel/2"), col(10, "% Allowed", "Allowed/2"), col(11, "% Allocated", "Allocated/7"),
	col(10, "Cluster", "Cluster/2"), col(9, "Class", "Classification/3"),
	col(20, "Cluster Nodes", "ClusterNodes/8"), col(20, "Coord Accounts", "Coordinators/2"),
	col(15, "ControlHost", "ControlHost/8"), col(12, "ControlPort", "ControlPort/8"), col(6, "Count", "Count/3"),
	col(7, "CPU Cnt", "CPUCount/2"), col(10, "Def Acct", "DefaultAccount/8"), col(9, "Def QOS", "DefaultQOS/8"),
	col(10, "Def WCKey", "DefaultWCKey/8"), col(20, "Descr", "Description/3"),
	col(19, "TimeEnd", "End/2", "TimeEnd/6"), col(7, "Event", "Event/2"), col(8, "EventRaw", "EventRaw/6"),
	col(9, "Share", "FairShare/2", "Share/1"), col(20, "Features", "Features/3"),
	col(10, "Federation", "Federation/3"), col(12, "FedState", "FedState/4"),
	col(11, "FedStateRaw", "FedStateRaw/9"), col(20, "Flags", "Flags/2"), col(10, "GraceTime", "GraceTime/3"),
	col(8, "GrpCPUs", "GrpCPUs/6"), col(11, "GrpCPUMins", "GrpCPUMins/7"),
	col(13, "GrpCPURunMins", "GrpCPURunMins/7"), col(7, "GrpJobs", "GrpJobs/4"),
	col(13, "GrpJobsAccrue", "GrpJobsAccrue/8"), col(7, "GrpMem", "GrpMem/4"), col(8, "GrpNodes", "GrpNodes/4"),
	col(9, "GrpSubmit", "GrpSubmitJobs/4"), col(13, "GrpTRES", "GrpTRES/7"),
	col(13, "GrpTRESMins", "GrpTRESMins/8"), col(13, "GrpTRESRunMins", "GrpTRESRunMins/8"),
	col(11, "GrpWall", "GrpWall/4"), col(6, "ID", "ID/2"), col(20, "Info", "Info/2"), col(6, "LFT", "Lft/1"),
	col(11, "LimitFactor", "LimitFactor/6"), col(11, "MaxCPUMins", "MaxCPUMinsPerJob/7"),
	col(8, "MaxCPUs", "maxcpusper/7"), col(9, "MaxCPUsPU", "MaxCPUsPerUser/11"), col(7, "MaxJobs", "MaxJobs/4"),
	col(13, "MaxJobsAccrue", "MaxJobsAccrue/8"), col(15, "MaxJobsAccruePA", "MaxJobsAccruePA/15"),
	col(15, "MaxJobsAccruePU", "MaxJobsAccruePU/15"), col(9, "MaxJobsPA", "MaxJobsPA/9", "MaxJobsPerAccount/11"),
	col(9, "MaxJobsPU", "MaxJobsPerUser/11", "MaxJobsPU/9"), col(8, "MaxNodes", "maxnodesper/4"),
	col(10, "MaxNodesPU", "MaxNodesPerUser/12"), col(9, "MaxSubmit", "MaxSubmitJobs/4"),
	col(11, "MaxSubmitPU", "MaxSubmitJobsPerUser/14", "MaxSubmitPU/10"),
	col(11, "MaxSubmitPA", "MaxSubmitJobsPerAccount/17", "MaxSubmitPA/11"),
	col(13, "MaxTRES", "MaxTRES/7", "MaxTRESPerJob/11"),
	col(13, "MaxTRESMins", "MaxTRESMinsPerJob/8"), col(13, "MaxTRESPA", "MaxTRESPA/9", "MaxTRESPerAccount/11"),
	col(14, "MaxTRESPerNode", "MaxTRESPerNode/11"), col(13, "MaxTRESPU", "MaxTRESPerUser/11", "MaxTRESPU/9"),
	col(15, "MaxTRESRunMinsPU", "MaxTRESRunMinsPerUser/8", "MaxTRESRunMinsPU/8"),
	col(11, "MaxWall", "MaxWallDurationPerJob/4"), col(12, "MinPrioThres", "MinPrioThresh/4"),
	col(13, "MinTRES", "MinTRESPerJob/7"), col(10, "Name", "Name/2"), col(9, "NodeCount", "NodeCount/5"),
	col(9, "NodeInx", "NodeInx/5"), col(15, "NodeName", "NodeNames/5"), col(20, "Org", "Organization/1"),
	col(40, "Problem", "Problem/1"), col(8, "ParentID", "ParentID/7"), col(10, "ParentName", "ParentName/7"),
	col(10, "Partition", "Partition/4"), col(14, "PluginIDSelect", "PluginIDSelect/2"),
	col(10, "Preempt", "Preempt/7"), col(19, "PreemptExemptTime", "PreemptExemptTime/8"),
	col(11, "PreemptMode", "PreemptMode/8"), col(10, "Priority", "Priority/3"), col(20, "QOS", "QosLevel/3"),
	col(10, "QOS_RAW", "QOSRawLevel/4"), col(30, "Reason", "Reason/1"), col(6, "RGT", "Rgt/2"),
	col(5, "RPC", "RPC/2"), col(10, "Server", "Server/3"), col(10, "ServerType", "ServerType/10"),
	col(6, "State", "State/2"), col(19, "TimeStart", "Start/4", "TimeStart/8"), col(8, "StateRaw", "StateRaw/6"),
	col(19, "Time", "TimeStamp/2"), col(20, "TRES", "TRES/2"), col(8, "Type", "Type/2"), col(10, "User", "User/1"),
	col(11, "UsageFactor", "UsageFactor/6"), col(10, "UsageThres", "UsageThreshold/6"),
	col(20, "WCKeys", "WCKey/2"), col(20, "Where", "Where/2"),
}

// wckeyTable are the columns of the list of wckeys.
var wckeyTable = []column{
	col(10, "Cluster", "Cluster/2"), col(6, "ID", "ID/1"), col(10, "User", "User/1"),
	col(10, "WCKey", "WCKey/1", "Name/1"),
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
	return unset[header]
}

// unset are the values of columns about other records, as Slurm prints them in each row.
var unset = map[string]string{
	"% Allowed": "0", "% Allocated": "0", "ControlPort": "0", "Count": "0", "EventRaw": "0", "FedStateRaw": "0",
	"NodeCount": "0", "PluginIDSelect": "0", "RPC": "0", "StateRaw": "0", "LimitFactor": "0.000000",
	"TimeStart": "Unknown", "TimeEnd": "Unknown", "Time": "Unknown",
	"GraceTime": "00:00:00", "PreemptExemptTime": "00:00:00",
}

// selection is the columns of a listing: their indexes, and their fields with
// the widths of format=.
type selection struct {
	columns []column
	at      []int
	fields  []format.Field
	printed []string // the headers of the columns that rows have; nil: all
}

// selectColumns parses a format: names of columns or prefixes of them.
func selectColumns(columns []column, text string) (*selection, error) {
	s := &selection{columns: columns}
	var unknown []string
	for item := range strings.SplitSeq(format.WithoutRepeated(text), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" {
			continue
		}
		k := findColumn(columns, name)
		if k < 0 {
			unknown = append(unknown, "Unknown field '"+strings.ToLower(name)+"'")
			continue
		}
		f := columns[k].Field
		if _, one, _ := format.ParseFields([]format.Field{f}, strings.Replace(item, name, f.Name, 1)); len(one) == 1 {
			f = one[0]
		}
		s.at, s.fields = append(s.at, k), append(s.fields, f)
	}
	if len(unknown) > 0 {
		return nil, refusef("%s", strings.Join(unknown[:reported(columns, len(unknown))], "\n"))
	}
	return s, nil
}

// reported returns how many of n unknown fields are reported: as in Slurm, all of those of
// wckeys, and else the first one.
func reported(columns []column, n int) int {
	if &columns[0] == &wckeyTable[0] {
		return n
	}
	return 1
}

// findColumn returns the index of the column whose name is name, or else of the first one
// that name abbreviates, or -1.
func findColumn(columns []column, name string) int {
	index := func(matches func(columnName) bool) int {
		return slices.IndexFunc(columns, func(c column) bool { return slices.ContainsFunc(c.names, matches) })
	}
	if i := index(func(n columnName) bool { return strings.EqualFold(n.text, name) }); i >= 0 {
		return i
	}
	return index(func(n columnName) bool { return keyvalue.Abbreviates(name, n.text, n.least) })
}

// inRows returns the fields and columns that rows have.
func (s *selection) inRows() (fields []format.Field, at []int) {
	if s.printed == nil {
		return s.fields, s.at
	}
	for i, c := range s.at {
		if slices.Contains(s.printed, s.columns[c].Name) {
			fields, at = append(fields, s.fields[i]), append(at, c)
		}
	}
	return fields, at
}

// print prints rows in the selected columns.
func (o *Options) print(s *selection, rows []row) error {
	b := format.AppendFieldHeader(nil, s.fields, o.style)
	fields, at := s.inRows()
	values := make([]string, len(fields))
	style := o.style
	if n := len(s.at); n > 0 && (len(at) == 0 || at[len(at)-1] != s.at[n-1]) {
		style.Ending = true // as in Slurm: the last column of the row is not the last one of the list
	}
	for i := range rows {
		for k, c := range at {
			values[k] = rows[i].value(s.columns[c].Name)
		}
		b = format.AppendFields(b, fields, values, style)
	}
	_, err := o.p.Out.Write(b)
	return err
}
