package agent

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// Variables that the commands inside a job find the cluster by.
const (
	envKubeHost  = "BERTH_KUBE_HOST"
	envNamespace = "BERTH_NAMESPACE"
)

// defaultPath is the PATH of a job whose submitter had none (--export=NONE).
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// ours are the variables that let the processes of the job find this agent
// and the cluster. They stand for this node, so every agent sets its own.
func (a *Agent) ours() []string {
	w := a.welcome
	list := []string{
		wire.EnvJobID + "=" + strconv.FormatInt(w.JobID, 10),
		wire.EnvStepSocket + "=" + a.socket,
		wire.EnvPodIP + "=" + a.config.PodIP,
		wire.EnvBinDir + "=" + a.config.BinDir,
		envKubeHost + "=" + w.KubeHost,
		envNamespace + "=" + w.Namespace,
	}
	for name, path := range map[string]string{wire.EnvSrunProlog: a.site.SrunProlog, wire.EnvSrunEpilog: a.site.SrunEpilog} {
		if path != "" {
			list = append(list, name+"="+path)
		}
	}
	for _, e := range a.config.Environ {
		if strings.HasPrefix(e, "KUBERNETES_SERVICE_") {
			list = append(list, e)
		}
	}
	return list
}

// network tells MPI libraries which interface to use where the pods of one
// machine share its loopback; what the user says wins.
func (a *Agent) network(base []string) []string {
	ip := net.ParseIP(a.config.PodIP)
	if ip == nil || !ip.IsLoopback() {
		return nil
	}
	want := []string{"OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_btl_tcp_if_include=lo", "HYDRA_IFACE=lo"}
	return slices.DeleteFunc(want, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		_, set := env.Get(base, name)
		return set
	})
}

// batchEnv is the environment of the batch script.
func (a *Agent) batchEnv(submitted []string) []string {
	w := a.welcome
	// The submitter's way to the cluster is not the job's: inside, commands
	// go by the pod's own token.
	base := env.Without(submitted, func(name string) bool { return name == "KUBECONFIG" })
	for _, d := range [][2]string{{"HOME", w.Home}, {"USER", w.User}, {"LOGNAME", w.User}, {"SHELL", w.Shell}} {
		if _, set := env.Get(base, d[0]); !set && d[1] != "" {
			base = append(base, d[0]+"="+d[1])
		}
	}
	base = env.Merge(base, a.imageEnv(base)...)
	path, _ := env.Get(base, "PATH")
	if path == "" {
		path = defaultPath
	}
	base = env.Merge(base, append(env.Batch(a.input), a.network(base)...)...)
	return env.Merge(base, append(a.ours(), "PATH="+a.config.BinDir+":"+path)...)
}

// imageEnv is what a job that chose its image takes over from it: everything
// that the image sets, but for the variables that --container-env keeps and
// those of the pod.
func (a *Agent) imageEnv(submitted []string) []string {
	c := a.job.Batch.Container
	if c["image"] == "" {
		return nil
	}
	kept := strings.Split(c["env"], ",")
	return env.Without(a.config.Environ, func(name string) bool {
		_, own := env.Get(submitted, name)
		switch {
		case own && slices.Contains(kept, name), strings.HasPrefix(name, "BERTH_"), strings.HasPrefix(name, "KUBERNETES_"):
			return true
		}
		return name == "HOME" || name == "HOSTNAME" || name == wire.EnvPodIndex
	})
}

// taskEnv is the environment of a step's task on this node.
func (a *Agent) taskEnv(l *step.Launch, n *step.NodeTasks, local int) []string {
	over := env.Step(a.input, l.Step)
	over = append(over, env.Task(l.Step, int(n.Step), local)...)
	over = append(over, "SLURM_CPUS_ON_NODE="+strconv.Itoa(int(n.CPUs)))
	over = append(over, a.network(l.Command.Env)...)
	if path, _ := env.Get(l.Command.Env, "PATH"); path != "" && !strings.Contains(":"+path+":", ":"+a.config.BinDir+":") {
		over = append(over, "PATH="+a.config.BinDir+":"+path) // srun is elsewhere
	}
	return env.Merge(l.Command.Env, append(over, a.ours()...)...)
}
