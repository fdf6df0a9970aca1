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

// Variables by which the commands inside a job find the cluster.
const (
	envKubeHost  = "BERTH_KUBE_HOST"
	envNamespace = "BERTH_NAMESPACE"
)

// defaultPath is the PATH of a job whose submitter had none (--export=NONE).
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// agentEnv returns the variables by which processes of the job find the agent of
// their node, and the cluster.
func (a *Agent) agentEnv() []string {
	w := a.welcome
	list := []string{
		wire.EnvJobID + "=" + strconv.FormatInt(w.JobID, 10),
		wire.EnvStepSocket + "=" + a.socket,
		wire.EnvPodIP + "=" + a.config.PodIP,
		wire.EnvBinDir + "=" + a.config.BinDir,
		envKubeHost + "=" + w.KubeHost,
		envNamespace + "=" + w.Namespace,
	}
	for name, path := range map[string]string{
		wire.EnvSrunProlog: a.site.SrunProlog, wire.EnvSrunEpilog: a.site.SrunEpilog,
	} {
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

// mpiInterfaceEnv returns the variables that make MPI libraries use the loopback
// interface if pods of one machine share it. Variables that are set in base win.
func (a *Agent) mpiInterfaceEnv(base []string) []string {
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

// batchEnv returns the environment of the batch script.
func (a *Agent) batchEnv(submitted []string) []string {
	w := a.welcome
	// Commands inside the job use the pod's token, not the submitter's
	// credentials.
	base := env.Without(submitted, func(name string) bool { return name == "KUBECONFIG" })
	for _, d := range [][2]string{{"HOME", w.Home}, {"USER", w.User}, {"LOGNAME", w.User}, {"SHELL", w.Shell}} {
		if _, set := env.Get(base, d[0]); !set && d[1] != "" {
			base = append(base, d[0]+"="+d[1])
		}
	}
	base = env.Merge(base, a.imageEnv(base)...)
	base = env.Merge(base, a.deviceEnv(base)...)
	path, _ := env.Get(base, "PATH")
	if path == "" {
		path = defaultPath
	}
	base = env.Merge(base, append(env.Batch(a.input), a.mpiInterfaceEnv(base)...)...)
	if w.Traceparent != "" {
		base = env.Merge(base, wire.EnvTraceparent+"="+w.Traceparent)
	}
	return env.WithSlurmConf(env.Merge(base, append(a.agentEnv(), a.withCommands(path))...))
}

// withCommands returns PATH=path, with the directory of the commands added at the beginning
// if path does not contain it.
func (a *Agent) withCommands(path string) string {
	if strings.Contains(":"+path+":", ":"+a.config.BinDir+":") {
		return "PATH=" + path
	}
	return "PATH=" + a.config.BinDir + ":" + path
}

// imageEnv returns the variables that a job with --container-image gets from the image: all
// that the image sets, except those that --container-env preserves and those of the pod.
func (a *Agent) imageEnv(submitted []string) []string {
	c := a.job.Batch.Container
	if c["image"] == "" {
		return nil
	}
	preserved := strings.Split(c["env"], ",")
	return env.Without(a.config.Environ, func(name string) bool {
		_, own := env.Get(submitted, name)
		return own && slices.Contains(preserved, name) || isOfPod(name)
	})
}

// isOfPod reports whether every container of a job has the variable, or the node sets it.
func isOfPod(name string) bool {
	return strings.HasPrefix(name, "BERTH_") || strings.HasPrefix(name, "KUBERNETES_") ||
		name == "HOME" || name == "HOSTNAME" || name == wire.EnvPodIndex
}

// deviceEnv returns the variables that a job with generic resources on this node gets from its
// container: what device plugins and drivers tell programs about devices is there, such as
// CUDA_MPS_PIPE_DIRECTORY. Those in environ stay as they are.
func (a *Agent) deviceEnv(environ []string) []string {
	w := a.welcome
	if i := int(w.Index); i >= len(w.Hosts) || len(w.Hosts[i].GRES) == 0 {
		return nil
	}
	return env.Without(a.config.Environ, func(name string) bool {
		_, set := env.Get(environ, name)
		return set || name == "PATH" || isOfPod(name)
	})
}

// taskEnv returns the environment of a step's task on this node.
func (a *Agent) taskEnv(l *step.Launch, n *step.NodeTasks, local int) []string {
	over := env.Step(a.input, l.Step)
	over = append(over, env.Task(l.Step, int(n.Step), local)...)
	over = append(over, "SLURM_CPUS_ON_NODE="+strconv.Itoa(int(n.CPUs)))
	over = append(over, a.mpiInterfaceEnv(l.Command.Env)...)
	over = append(over, a.deviceEnv(l.Command.Env)...)
	if path, _ := env.Get(l.Command.Env, "PATH"); path != "" {
		over = append(over, a.withCommands(path)) // an srun outside of the job has another directory
	}
	if _, set := env.Get(l.Command.Env, "TMPDIR"); !set {
		over = append(over, "TMPDIR=/tmp")
	}
	// An srun in a traced program continues the program's trace.
	if _, set := env.Get(l.Command.Env, wire.EnvTraceparent); !set && a.welcome.Traceparent != "" {
		over = append(over, wire.EnvTraceparent+"="+a.welcome.Traceparent)
	}
	if l.Command.Terminal != nil {
		if port := env.StepPort(a.input); port != "" {
			over = append(over, "SLURM_PTY_PORT="+port)
		}
	}
	return env.WithSlurmConf(env.Merge(l.Command.Env, append(over, a.agentEnv()...)...))
}
