package slurmconf

import "strings"

// daemonNames are the parameters that only concern Slurm's daemons: their hosts,
// ports, files, logs, plugins and timeouts.
const daemonNames = `
	AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost
	AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageType
	AccountingStorageUser AccountingStorageTRES AuthAltParameters AuthAltTypes AuthInfo AuthType
	BackupAddr BackupController BcastExclude BcastParameters CliFilterPlugins CommunicationParameters
	ControlAddr ControlMachine CredType DebugFlags DependencyParameters EioTimeout EpilogMsgTime
	FederationParameters GetEnvTimeout GroupUpdateForce GroupUpdateTime JobAcctGatherFrequency
	JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPort
	JobCompType JobCompUser JobContainerType LaunchType LogTimeFormat MailDomain MaxDBDMsgs
	MessageTimeout MpiDefault MpiParams PlugStackConfig PluginDir ProctrackType ReconfigFlags
	ReturnToService RoutePlugin SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SlurmctldAddr
	SlurmctldDebug SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
	SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
	SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile
	SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdUser SrunPortRange
	StateSaveLocation SwitchParameters SwitchType TCPTimeout TmpFS TopologyParam TreeWidth
	UnkillableStepProgram UnkillableStepTimeout VSizeFactor TaskPlugin TaskPluginParam
	SchedulerParameters InactiveLimit WaitTime
`

// otherNames are all other parameters of slurm.conf(5), supported or not.
const otherNames = `
	AccountingStorageEnforce AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType
	AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage
	BatchStartTimeout BurstBufferType ClusterName CompleteWait CoreSpecPlugin CpuFreqDef
	CpuFreqGovernors DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DisableRootJobs
	EnforcePartLimits Epilog EpilogSlurmctld ExtSensorsFreq ExtSensorsType FairShareDampeningFactor
	FirstJobId GresTypes HealthCheckInterval HealthCheckNodeState HealthCheckProgram
	InteractiveStepOptions JobFileAppend JobRequeue JobSubmitPlugins KillOnBadExit KillWait
	LaunchParameters Licenses MCSParameters MCSPlugin MailProg MaxArraySize MaxJobCount MaxJobId
	MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MinJobAge NodeFeaturesPlugins
	OverTimeLimit PowerParameters PowerPlugin PrEpParameters PrEpPlugins PreemptExemptTime PreemptMode
	PreemptType PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags
	PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin
	PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
	PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData
	Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld PropagatePrioProcess PropagateResourceLimits
	PropagateResourceLimitsExcept RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram SlurmdTimeout
	RebootProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog SchedulerTimeSlice SchedulerType
	ScronParameters SelectType SelectTypeParameters SrunEpilog SrunProlog SuspendExcNodes
	SuspendExcParts SuspendProgram SuspendRate SuspendTime SuspendTimeout TaskEpilog TaskProlog
	TopologyPlugin TrackWCKey UsePAM
`

var (
	// names maps the name of a parameter in lower case to its spelling in slurm.conf(5).
	names = index(daemonNames + otherNames)
	// daemonOnly has the parameters of daemonNames, in lower case.
	daemonOnly = lower(daemonNames)
)

func index(words string) map[string]string {
	m := map[string]string{}
	for _, w := range strings.Fields(words) {
		m[strings.ToLower(w)] = w
	}
	return m
}

func lower(words string) map[string]bool {
	m := map[string]bool{}
	for w := range index(words) {
		m[w] = true
	}
	return m
}
