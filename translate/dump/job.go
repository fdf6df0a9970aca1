package dump

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// instant writes a time; 0 means none.
func (w *writer) instant(key string, t int64) { w.number(key, t, true) }

func (f *Form) job(w *writer, j *status.Job) {
	f.jobHead(w, j)
	f.jobMiddle(w, j)
	f.jobShape(w, j)
	f.jobTail(w, j)
}

func (f *Form) jobHead(w *writer, j *status.Job) {
	w.text("account", j.Account)
	w.instant("accrue_time", j.Accrue)
	w.text("admin_comment", j.AdminComment)
	if w.modern {
		w.text("allocating_node", j.SubmitHost)
	}
	w.number("array_job_id", j.ArrayJobID, true)
	task, err := strconv.ParseInt(j.ArrayTaskID, 10, 64)
	single := j.ArrayJobID != 0 && err == nil
	switch {
	case single:
		w.number("array_task_id", task, true)
	case w.modern:
		w.number("array_task_id", 0, false)
	default:
		w.null("array_task_id")
	}
	w.number("array_max_tasks", int64(j.ArrayMax), true)
	if single {
		w.text("array_task_string", "")
	} else {
		w.text("array_task_string", j.ArrayTaskID)
	}
	w.integer("association_id", 0)
	w.text("batch_features", "")
	w.boolean("batch_flag", !j.NoBatch)
	w.text("batch_host", j.BatchHost)
	w.texts("flags", jobFlags(j)...)
	w.text("burst_buffer", "")
	w.text("burst_buffer_state", "")
	w.text("cluster", cmp.Or(j.Cluster, f.Cluster))
	w.text("cluster_features", j.ClusterFeature)
	w.text("command", j.Command)
	w.text("comment", j.Comment)
	w.text("container", j.Container)
	if w.modern {
		w.text("container_id", "")
	}
	w.boolean("contiguous", j.Contiguous)
	if w.modern {
		w.integer("core_spec", int64(j.CoreSpec))
		w.integer("thread_spec", 0)
	} else {
		w.count("core_spec", int64(j.CoreSpec))
		w.null("thread_spec")
	}
	w.count("cores_per_socket", int64(j.CoresPerSocket))
}

func jobFlags(j *status.Job) []string {
	var out []string
	if j.CPUsPerTask > 1 {
		out = append(out, "JOB_CPUS_SET")
	}
	if j.MinMemory != 0 {
		out = append(out, "JOB_MEM_SET")
	}
	if j.State == "RUNNING" || j.State == "SUSPENDED" {
		out = append(out, "JOB_WAS_RUNNING")
	}
	return out
}

func (f *Form) jobMiddle(w *writer, j *status.Job) {
	switch {
	case w.modern:
		w.object("billable_tres", func() {
			w.boolean("set", j.NodeList != "")
			w.boolean("infinite", false)
			w.float("number", float64(j.CPUs))
		})
	case j.NodeList != "":
		w.float("billable_tres", float64(j.CPUs))
	default:
		w.null("billable_tres")
	}
	w.count("cpus_per_task", int64(j.CPUsPerTask))
	for _, key := range []string{"cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor"} {
		w.count(key, 0)
	}
	w.text("cpus_per_tres", j.CPUsPerTRES)
	if w.modern {
		w.text("cron", "")
	}
	w.instant("deadline", j.Deadline)
	w.number("delay_boot", 0, true)
	w.text("dependency", j.Dependency)
	w.exit("derived_exit_code", j.DerivedCode, j.DerivedSignal, false)
	w.instant("eligible_time", j.Eligible)
	w.instant("end_time", endTime(j))
	w.text("excluded_nodes", j.ExcNodes)
	w.exit("exit_code", j.ExitCode, j.Signal, j.State == "PENDING" || j.State == "RUNNING")
	if w.modern {
		w.text("extra", j.Extra)
		w.text("failed_node", "")
	}
	w.text("features", j.Features)
	w.text("federation_origin", j.Cluster)
	w.text("federation_siblings_active", "")
	w.text("federation_siblings_viable", "")
	w.texts("gres_detail", gresDetail(j)...)
	w.integer("group_id", j.GID)
	w.text("group_name", j.Group)
	if w.modern {
		w.number("het_job_id", j.HetJobID, true)
		w.text("het_job_id_set", j.HetJobSet)
		w.number("het_job_offset", int64(j.HetOffset), true)
	}
	w.integer("job_id", j.ID)
	resources(w, j)
	if w.modern {
		w.array("job_size_str", func() {})
	}
	state(w, j)
	w.instant("last_sched_evaluation", j.LastSched)
	w.text("licenses", j.Licenses)
	if w.modern {
		w.texts("mail_type", split(j.MailType)...)
		w.text("mail_user", j.MailUser)
	}
}

// exit writes an exit code: in 22.05 a status of wait(2).
func (w *writer) exit(key string, code, signal int32, pending bool) {
	if !w.modern {
		w.integer(key, int64(code<<8|signal))
		return
	}
	w.object(key, func() {
		word := "SUCCESS"
		switch {
		case pending:
			word = "PENDING"
		case signal != 0:
			word = "SIGNALED"
		case code != 0:
			word = "ERROR"
		}
		w.texts("status", word)
		w.number("return_code", int64(code), true)
		w.object("signal", func() {
			w.number("id", int64(signal), signal != 0)
			name := ""
			if signal != 0 {
				name = value.SignalName(signal)
			}
			w.text("name", name)
		})
	})
}

func state(w *writer, j *status.Job) {
	if w.modern {
		w.texts("job_state", j.State)
		return
	}
	w.text("job_state", j.State)
}

func endTime(j *status.Job) int64 {
	if j.End == 0 && j.Start != 0 && j.TimeLimit >= 0 {
		return j.Start + int64(j.TimeLimit)*60
	}
	return j.End
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// nodeShare is the allocation of a job on one node, from status.Job.Layout.
type nodeShare struct{ node, cpus, memory, gres string }

func (f *Form) jobShape(w *writer, j *status.Job) {
	w.number("max_cpus", int64(j.MaxCPUs), true)
	w.number("max_nodes", int64(j.MaxNodes), true)
	w.text("mcs_label", "")
	w.text("memory_per_tres", j.MemPerTRES)
	w.text("name", j.Name)
	if w.modern {
		w.text("network", j.Network)
	}
	w.text("nodes", j.NodeList)
	if w.modern {
		w.integer("nice", int64(j.Nice))
	} else {
		w.count("nice", int64(j.Nice))
	}
	w.count("tasks_per_core", int64(j.TasksPerCore))
	if w.modern {
		w.count("tasks_per_tres", 0)
	}
	w.number("tasks_per_node", int64(j.TasksPerNode), true)
	w.count("tasks_per_socket", int64(j.TasksPerSocket))
	w.number("tasks_per_board", 0, true)
	w.number("cpus", int64(j.CPUs), true)
	w.number("node_count", int64(j.Nodes), true)
	w.number("tasks", int64(j.Tasks), true)
	if !w.modern {
		w.integer("het_job_id", j.HetJobID)
		w.text("het_job_id_set", j.HetJobSet)
		w.integer("het_job_offset", int64(j.HetOffset))
	}
	w.text("partition", j.Partition)
	w.text("prefer", j.Prefer)
	f.jobMemory(w, j)
	w.number("minimum_cpus_per_node", int64(max(1, j.MinCPUs)), true)
	w.number("minimum_tmp_disk_per_node", j.TmpDisk, true)
	if w.modern {
		w.object("power", func() { w.array("flags", func() {}) })
	}
	w.instant("preempt_time", j.PreemptTime)
	if w.modern {
		w.instant("preemptable_time", 0)
	}
	w.number("pre_sus_time", j.PreSuspend, true)
	if w.modern {
		w.boolean("hold", j.State == "PENDING" && j.Priority == 0)
	}
	w.number("priority", j.Priority, true)
	switch {
	case w.modern && j.Profile != "":
		w.texts("profile", j.Profile)
	case w.modern:
		w.texts("profile", "NOT_SET")
	case j.Profile != "":
		w.texts("profile", j.Profile)
	default:
		w.null("profile")
	}
	w.text("qos", j.QOS)
	w.boolean("reboot", false)
	w.text("required_nodes", j.ReqNodes)
	if w.modern {
		if w.parser < v42 {
			w.integer("minimum_switches", int64(j.Switches))
		}
	}
	w.boolean("requeue", j.Requeue)
}

func (f *Form) jobMemory(w *writer, j *status.Job) {
	node, cpu := j.MinMemory, int64(0)
	if j.MemoryPerCPU {
		node, cpu = cpu, node
	}
	if w.modern {
		w.number("memory_per_cpu", cpu, j.MemoryPerCPU)
		w.number("memory_per_node", node, !j.MemoryPerCPU)
		return
	}
	w.count("memory_per_node", node)
	w.count("memory_per_cpu", cpu)
}

func (f *Form) jobTail(w *writer, j *status.Job) {
	w.instant("resize_time", j.ResizeTime)
	w.integer("restart_cnt", int64(j.Restarts))
	w.text("resv_name", j.Reservation)
	shared(w, j)
	if w.parser < v42 {
		w.texts("show_flags", "SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL")
	}
	w.integer("sockets_per_board", 0)
	w.count("sockets_per_node", int64(j.SocketsPerNode))
	w.instant("start_time", j.Start)
	w.text("state_description", j.Message)
	w.text("state_reason", j.Reason)
	if w.modern || j.StdErr != j.StdOut {
		w.text("standard_error", j.StdErr)
	} else {
		w.text("standard_error", "")
	}
	w.text("standard_input", j.StdIn)
	w.text("standard_output", j.StdOut)
	w.instant("submit_time", j.Submit)
	w.instant("suspend_time", j.SuspendTime)
	w.text("system_comment", "")
	w.limit("time_limit", int64(j.TimeLimit))
	w.number("time_minimum", int64(j.TimeMin), true)
	w.count("threads_per_core", int64(j.ThreadsPerCore))
	w.text("tres_bind", "")
	w.text("tres_freq", "")
	w.text("tres_per_job", j.TRESPerJob)
	w.text("tres_per_node", perNode(j.GRES))
	w.text("tres_per_socket", j.TRESPerSocket)
	w.text("tres_per_task", j.TRESPerTask)
	w.text("tres_req_str", j.TRESReq)
	alloc := ""
	if j.NodeList != "" {
		alloc = j.TRES
	}
	w.text("tres_alloc_str", alloc)
	w.integer("user_id", j.UID)
	w.text("user_name", j.User)
	if w.modern {
		w.integer("maximum_switch_wait_time", int64(j.SwitchesWait))
	}
	w.text("wckey", j.WCKey)
	w.text("current_working_directory", j.WorkDir)
}

// shared writes how the nodes may be shared, whose form has changed twice.
func shared(w *writer, j *status.Job) {
	word := map[string]string{"NO": "none", "YES": "shared", "USER": "user", "MCS": "mcs"}[j.OverSubscribe]
	if !w.modern {
		if word == "" {
			w.null("shared")
		} else {
			w.text("shared", word)
		}
		return
	}
	w.text("scheduled_nodes", j.PlannedNodes)
	w.text("selinux_context", "")
	var list, exclusive []string
	if word != "" {
		list = []string{word}
	}
	switch word {
	case "none":
		exclusive = []string{"true"}
	case "user", "mcs":
		exclusive = []string{word}
	}
	w.texts("shared", list...)
	if w.parser < v42 {
		w.texts("exclusive", exclusive...)
		w.boolean("oversubscribe", word == "shared")
	}
}

// perNode returns --gres in the form of tres_per_node.
func perNode(gres string) string {
	if gres == "" {
		return ""
	}
	parts := strings.Split(gres, ",")
	for i, g := range parts {
		if !strings.HasPrefix(g, "gres:") {
			parts[i] = "gres:" + g
		}
	}
	return strings.Join(parts, ",")
}
