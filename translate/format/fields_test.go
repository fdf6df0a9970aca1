package format

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// The names of -O that Slurm 22.05.8 accepts.
const (
	jobNames = "account accruetime admin_comment allocnodes allocsid arrayjobid arraytaskid associd batchflag batchhost boardspernode burstbuffer " +
		"burstbufferstate cluster clusterfeature command comment container contiguous cores corespec cpus-per-task cpus-per-tres cpuspertask deadline delayboot " +
		"dependency derivedec eligibletime endtime exit_code feature groupid groupname hetjobid hetjobidset hetjoboffset jobarrayid jobid lastschedeval licenses " +
		"maxcpus maxnodes mcslabel mem-per-tres mincpus minmemory mintime mintmpdisk name network nice nodelist ntperboard ntpercore ntpernode ntpersocket " +
		"numcpus numnodes numtasks origin originraw oversubscribe packjobid packjobidset packjoboffset partition pendingtime preempttime prefer priority " +
		"prioritylong profile qos reason reasonlist reboot reqnodes reqswitch requeue reservation resizetime restartcnt schednodes sct selectjobinfo shared " +
		"siblingsactive siblingsactiveraw siblingsviable siblingsviableraw sockets sperboard starttime state statecompact stderr stdin stdout submittime " +
		"system_comment threads timeleft timelimit timeused tres tres-alloc tres-bind tres-freq tres-per-job tres-per-node tres-per-socket tres-per-task " +
		"userid username wckey workdir"
	stepNames = "arrayjobid arraytaskid cluster container cpufreq cpus-per-tres gres jobid mem-per-tres network nodes numcpus numtasks partition resvports " +
		"starttime stepid stepname stepstate timelimit timeused tres-bind tres-freq tres-per-job tres-per-node tres-per-socket tres-per-step tres-per-task " +
		"userid username"
	nodeNames = "all allocmem allocnodes available cluster comment cores cpus cpusload cpusstate defaulttime disk extra features features_act freemem gres " +
		"gresused groups maxcpuspernode memory nodeaddr nodeai nodeaiot nodehost nodelist nodes oversubscribe partition partitionname port preemptmode " +
		"priorityjobfactor prioritytier reason root share size socketcorethread sockets statecompact statecomplete statelong threads time timestamp user " +
		"userlong version weight"
)

// TestEveryNameIsKnown checks that every name of Slurm's columns is accepted.
func TestEveryNameIsKnown(t *testing.T) {
	if _, bad := ParseNames(JobColumns(), strings.ReplaceAll(jobNames, " ", ",")); bad != nil {
		t.Errorf("squeue does not know %q", bad)
	}
	if _, bad := ParseNames(StepColumns(), strings.ReplaceAll(stepNames, " ", ",")); bad != nil {
		t.Errorf("squeue -s does not know %q", bad)
	}
	if _, bad := ParseNodeNames(strings.ReplaceAll(nodeNames, " ", ",")); bad != nil {
		t.Errorf("sinfo does not know %q", bad)
	}
	if _, bad := ParseNames(JobColumns(), "all"); !slices.Equal(bad, []string{"all"}) {
		t.Errorf("squeue -O all: %q are bad", bad)
	}
}

// TestStepNamesAsSlurmPrintsThem compares headers and values of a step with one CPU
// and one GPU with those of squeue -s of Slurm 22.05.8.
func TestStepNamesAsSlurmPrintsThem(t *testing.T) {
	step := status.Step{ID: "1783.0", JobID: 1783, CPUs: 1, Tasks: 1, GRES: "gpu:1", State: "RUNNING", NodeList: "n1"}
	for name, want := range map[string]string{
		"cpufreq":       "CPU_FREQ            \nUnknown-Unknown:Unkn\n",
		"cpus-per-tres": "CPUS_PER_TRES       \n(null)              \n",
		"gres":          "TRES_PER_JOB        \ngres:gpu:1          \n",
		"tres-per-node": "TRES_PER_JOB        \ngres:gpu:1          \n",
		"tres-per-job":  "TRES_PER_STEP       \ncpu:1               \n",
		"tres-per-step": "TRES_PER_STEP       \ncpu:1               \n",
		"resvports":     "RESERVED_PORTS      \n(null)              \n",
		"network":       "NETWORK             \n(null)              \n",
		"nodes":         "NODELIST            \nn1                  \n",
		"numcpus":       "NUM_CPUS            \n1                   \n",
	} {
		l, _ := ParseNames(StepColumns(), name)
		if have := string(l.AppendRow(l.AppendHeader(nil), &step, &Settings{})); have != want {
			t.Errorf("%s: have %q, want %q", name, have, want)
		}
	}
}

// TestAllColumns checks the headers of %all.
func TestAllColumns(t *testing.T) {
	steps, _ := ParseLetters(StepColumns(), "%all")
	const stepHeader = "TRES_PER_JOB|STEPID|NAME|TIME_LIMIT|USER|TASKS|TIME|NODELIST|PARTITION|START_TIME|UID|\n"
	if have := string(steps.AppendHeader(nil)); have != stepHeader {
		t.Errorf("squeue -s -o %%all: %q, want %q", have, stepHeader)
	}
	l, _ := ParseNodeLetters("x%all")
	const header = "xAVAIL|ACTIVE_FEATURES|CPUS|TMP_DISK|FREE_MEM|AVAIL_FEATURES|GROUPS|OVERSUBSCRIBE|TIMELIMIT|MEMORY|HOSTNAMES|NODE_ADDR|PRIO_TIER|ROOT|JOB_SIZE|" +
		"STATE|USER|VERSION|WEIGHT|S:C:T|NODES(A/I) |MAX_CPUS_PER_NODE |CPUS(A/I/O/T) |NODES |REASON |NODES(A/I/O/T) |GRES |TIMESTAMP |PRIO_JOB_FACTOR |" +
		"DEFAULTTIME |PREEMPT_MODE |NODELIST |CPU_LOAD |PARTITION |PARTITION |ALLOCNODES |STATE |USER |CLUSTER |SOCKETS |CORES |THREADS \n"
	if have := string(l.AppendHeader(nil)); have != header {
		t.Errorf("sinfo -o x%%all:\n  have %q\n  want %q", have, header)
	}
	if l, _ := ParseNodeLetters("%all %N"); string(l.AppendHeader(nil)) != "AVAILll NODELIST\n" {
		t.Errorf("%%all before another letter: %q", l.AppendHeader(nil))
	}
	named, _ := ParseNodeNames("all")
	if have := string(named.AppendHeader(nil)); have != header[1:] {
		t.Errorf("sinfo -O all: %q", have)
	}
}

func TestSinfoRangesOfLoadAndMemory(t *testing.T) {
	part := []status.Partition{{Name: "debug", Nodes: []string{"n1", "n2"}}}
	nodes := []status.Node{
		{Name: "n1", State: "IDLE", Load: 2203, FreeMem: 20205},
		{Name: "n2", State: "IDLE", Load: 2942, FreeMem: 17376},
	}
	l, _ := ParseNodeLetters("%N|%O|%e")
	for exact, want := range map[bool][]string{
		false: {"n[1-2]|22.03-29.42|17376-20205\n"},
		true:  {"n1|22.03|20205\n", "n2|29.42|17376\n"},
	} {
		var have []string
		for _, g := range GroupNodes(l, part, nodes, exact, false) {
			have = append(have, string(l.AppendRow(nil, &g, &Settings{})))
		}
		if !slices.Equal(have, want) {
			t.Errorf("exact %v: have %q, want %q", exact, have, want)
		}
	}
}

func TestFieldsBeforeGap(t *testing.T) {
	for text, want := range map[string]string{
		"jobid,state": "jobid,state", "jobid,state,": "jobid,state,", "jobid,,state": "jobid", ",jobid": "", ",": "", "": "",
	} {
		if got := FieldsBeforeGap(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
