package sstat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// defaults are the fields without --format.
const defaults = "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode," +
	"MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov," +
	"ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask," +
	"AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,TRESUsageInMinNode," +
	"TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin," +
	"TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot"

// names are all fields in the order of --helpformat.
const names = "AveCPU,AveCPUFreq,AveDiskRead,AveDiskWrite,AvePages,AveRSS,AveVMSize,ConsumedEnergy,ConsumedEnergyRaw,JobID,MaxDiskRead," +
	"MaxDiskReadNode,MaxDiskReadTask,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,MaxPages,MaxPagesNode,MaxPagesTask,MaxRSS," +
	"MaxRSSNode,MaxRSSTask,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,MinCPU,MinCPUNode,MinCPUTask,Nodelist,NTasks,Pids,ReqCPUFreq," +
	"ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin," +
	"TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask," +
	"TRESUsageOutMin,TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot"

var table = fieldTable()

// fieldTable returns sacct's fields with these names and their widths, and two more.
func fieldTable() []format.Field {
	widths := map[string]format.Field{}
	for _, f := range format.AcctFields {
		widths[f.Name] = f
	}
	var out []format.Field
	for name := range strings.SplitSeq(names, ",") {
		f, ok := widths[name]
		switch {
		case !ok:
			f = format.Field{Name: name, Width: 20}
		case name == "AveDiskRead" || name == "AveDiskWrite":
			f.Width = 12 // 14 in sacct
		}
		out = append(out, f)
	}
	return out
}

// helpFormat returns the output of --helpformat.
func helpFormat() string {
	var b strings.Builder
	for i, f := range table {
		fmt.Fprintf(&b, "%-19s", f.Name)
		if i%4 == 3 || i == len(table)-1 {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
	}
	return b.String()
}

// print prints a line for each step, or with --pidformat for each of its nodes.
func (o *Options) print(job *status.Record, list []step.Usage) error {
	var b []byte
	for i := range list {
		u := &list[i]
		row := format.ReportedStep(&u.Record)
		row.Measured = true
		if !o.pids {
			b = o.line(b, job, &row, allPIDs(u))
			continue
		}
		for k, name := range u.Record.Nodes {
			if k < len(u.PIDs) {
				row.NodeList = name
				b = o.line(b, job, &row, u.PIDs[k])
			}
		}
	}
	return o.p.Print(string(b))
}

// allPIDs returns the pids of all nodes.
func allPIDs(u *step.Usage) []int32 {
	var all []int32
	for _, list := range u.PIDs {
		all = append(all, list...)
	}
	return all
}

// line appends the line of a step.
func (o *Options) line(b []byte, job *status.Record, row *status.StepRecord, pids []int32) []byte {
	values := make([]string, len(o.fields))
	for i, at := range o.at {
		switch name := table[at].Name; name {
		case "Pids":
			values[i] = joinPIDs(pids)
		case "Nodelist":
			values[i] = row.NodeList
		default:
			values[i] = format.AcctValue(name, &format.AcctRow{Job: job, Step: row}, &o.settings)
		}
	}
	return format.AppendFields(b, o.fields, values, o.style)
}

// joinPIDs returns pids as "12,13".
func joinPIDs(pids []int32) string {
	var words []string
	for _, p := range pids {
		words = append(words, strconv.Itoa(int(p)))
	}
	return strings.Join(words, ",")
}
