package bounds

import (
	"reflect"
	"sync"

	"github.com/berth-hpc/berth/translate/job"
)

// JobRules returns the rules of job.Job and everything in it. Callers must not change them.
var JobRules = sync.OnceValue(joinJobRules)

func joinJobRules() Rules {
	return Join(
		Of[job.Job](map[string]Rule{
			"name": Text(MaxName), "account": Text(MaxName), "qos": Text(MaxName), "reservation": Text(MaxName),
			"wckey":   Text(MaxName),
			"comment": Text(MaxName), "adminComment": Text(MaxName), "extra": Text(MaxName),
			"partitions": List(MaxPartitions, MaxObjectName).Distinct().Within(4 * MaxName),
			"licenses":   Structs(MaxLicenses),
			"hold":       Text(MaxName + len(job.HoldDeleted)),
			"nice":       Number(-MaxNice, MaxNice).WithText(BadNice),
			"siteFactor": Number(-MaxNice, MaxNice),
			"priority":   Number(0, MaxPriority),
			"options":    Map(MaxOptions, 64, MaxArgument).Within(MaxArgument),
		}),
		Of[job.License](map[string]Rule{
			"name": Text(MaxName).NotEmpty().WithText(BadLicense), "count": Number(0, MaxCount).WithText(BadLicense),
		}),
		Of[job.Shape](map[string]Rule{
			"minNodes": Number(0, MaxCount).WithText(BadNodeCount),
			"maxNodes": Number(0, MaxCount).WithText(BadNodeCount),
			"tasks":    Number(0, MaxCount).WithText(BadCPUs),

			"tasksPerNode": perTask, "tasksPerSocket": perTask, "tasksPerCore": perTask, "tasksPerGPU": perTask,
			"cpusPerTask": perTask, "cpusPerGPU": perTask, "minCPUs": perTask,
			"socketsPerNode": perTask, "coresPerSocket": perTask, "threadsPerCore": perTask, "coreSpec": perTask,

			"memPerNode": memory, "memPerCPU": memory, "memPerGPU": memory, "tmpDisk": memory,
			"gres": Structs(MaxGRES).WithText(BadGRES),
		}),
		Of[job.GRES](map[string]Rule{
			"name": Text(256).NotEmpty().WithText(BadGRES), "type": Text(256).WithText(BadGRES),
			"count": Number(0, MaxCount).WithText(BadGRES),
			"per":   OneOf(job.PerNode, job.PerJob, job.PerSocket, job.PerTask).NotEmpty().WithText(BadGRES),
		}),
		Of[job.Placement](map[string]Rule{
			"nodeList":   List(MaxNodeNames, MaxNodeName).Distinct(),
			"exclude":    List(MaxNodeNames, MaxNodeName).Distinct(),
			"constraint": Text(MaxName), "prefer": Text(MaxName), "batch": Text(MaxName),
			"exclusive": OneOf("node", "user", "mcs", "topo"),
			"switches":  Number(0, MaxCount), "switchesWaitSeconds": Number(0, MaxCount),
			"segment":      Number(0, MaxCount),
			"segments":     OneOf(job.SegmentsTogether, job.SegmentsApart),
			"distribution": Text(MaxName).WithText(BadTaskDist), "hint": Text(64),
		}),
		Of[job.Time](map[string]Rule{
			"limit": Number(int64(job.Unlimited), MaxMinutes).WithText(BadTimeLimit),
			"min":   Number(int64(job.Unlimited), MaxMinutes).WithText(BadTimeLimit),
			"begin": Number(0, MaxInstant).WithText(BadTime), "deadline": Number(0, MaxInstant).WithText(BadTime),
			"signal": Number(0, 65535), "signalBeforeSeconds": Number(0, 65535),
		}),
		Of[job.Batch](map[string]Rule{
			"workDir": Text(MaxPath), "submitHost": Text(MaxObjectName), "submitAddress": Text(MaxObjectName),
			"submitSID":  Number(0, MaxCount),
			"submitLine": Text(MaxLine),
			"args":       List(MaxArguments, MaxArgument).Within(MaxArgument),
			"command":    Text(MaxPath), "output": Text(MaxPath), "error": Text(MaxPath), "input": Text(MaxPath),
			"openMode": OneOf("a", "t"), "export": Text(MaxLine), "umask": Number(0, 0o777+1),
			"rlimits":   {Items: MaxRlimits, KeyBytes: 32, Max: 1<<63 - 1, Text: TooLong},
			"container": Map(MaxContainer, 64, 16<<10),
			"client":    OneOf("srun", "salloc", "no-shell"),
		}),
		Of[job.Group](map[string]Rule{"name": Text(256), "gid": Number(0, MaxUID).WithText(BadGroup)}),
		Of[job.Dependencies](map[string]Rule{"items": Structs(MaxDependencies).WithText(BadDependency).Distinct()}),
		Of[job.Dependency](map[string]Rule{
			"type": OneOf("after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer", "singleton",
				"expand").NotEmpty().WithText(BadDependency),
			"jobID": Number(0, MaxID).WithText(BadDependency), "task": Number(0, MaxArrayIndex).WithText(BadDependency),
			"delay": Number(0, MaxMinutes).WithText(BadDependency),
		}),
		Of[job.Array](map[string]Rule{"spec": Text(MaxArraySpec).NotEmpty().WithText(BadArray),
			"max": Number(0, MaxCount).WithText(BadArray)}),
		Of[job.Het](map[string]Rule{"offset": Number(0, MaxComponents-1), "size": Number(0, MaxComponents)}),
		Of[job.Mail](map[string]Rule{"types": List(MaxMailTypes, 32), "user": Text(MaxName)}),
	)
}

var (
	perTask = Number(0, MaxPerTask).WithText(BadCPUs)
	memory  = Number(0, MaxMemory).WithText(BadMemory)
)

// Job returns an *Exceeded for the first field of j that is beyond its bound, or nil.
func Job(j *job.Job) error { return JobChange(nil, j) }

// JobChange is Job for the fields of now that differ from old: a job that was stored
// when bounds were wider can still be changed. If old is nil, all fields are checked.
func JobChange(old, now *job.Job) error {
	var was reflect.Value
	if old != nil {
		was = reflect.ValueOf(old).Elem()
	}
	if err := JobRules().check("job", was, reflect.ValueOf(now).Elem()); err != nil {
		return err
	}
	if old != nil && reflect.DeepEqual(old.Shape, now.Shape) {
		return nil
	}
	return checkProduct(&now.Shape)
}

// checkProduct bounds the products of the counts of s, so that 32 bits are enough for
// CPUs and tasks in all.
func checkProduct(s *job.Shape) error {
	nodes := max(int64(s.MinNodes), 1)
	tasks := max(int64(s.Tasks), nodes*max(int64(s.TasksPerNode), 1), 1)
	for _, n := range []int64{tasks * max(int64(s.CPUsPerTask), 1), nodes * max(int64(s.MinCPUs), 1)} {
		if n > MaxCount {
			return &Exceeded{Field: "job.shape", Limit: "at most 2147483647 CPUs in all", Text: BadCPUs}
		}
	}
	return nil
}
