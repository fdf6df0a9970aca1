package localcluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/localcluster/controlplane"
)

// fileAccounting is the database of accounting in the state directory.
const fileAccounting = "accounting.db"

// dirArchive is the directory of sacctmgr archive dump.
const dirArchive = "archive"

// startScheduler runs the scheduler in this process, or releases its port for one
// outside.
func (k *cluster) startScheduler(ctx context.Context) error {
	rc := k.client(identityScheduler)
	if err := awaitPermissions(ctx, rc); err != nil {
		return fmt.Errorf("scheduler's permissions: %w", err)
	}
	if k.Parts.Scheduler == nil {
		target := k.queue.Addr().String()
		if err := k.queue.Close(); err != nil { // open until now so that no other process binds it
			return err
		}
		if k.network == nil || k.info.PodURL == k.info.PublicURL {
			return nil
		}
		_, err := k.network.Relay(uint16(portOf(k.queue)), target)
		return err
	}
	c := SchedulerConfig{
		Kube: rc, Listener: k.queue,
		PublicURL: k.info.PublicURL, PodURL: k.info.PodURL, KubeURL: k.info.KubeURL,
		CAFile: k.pki.Path("ca.crt"), CertFile: k.pki.Path(certQueue + ".crt"), KeyFile: k.pki.Path(certQueue + ".key"),
		Log:        k.log("scheduler"),
		Admit:      k.gate().Decide,
		Accounting: cmp.Or(k.Accounting, k.state.path(fileAccounting)), Archive: k.state.path(dirArchive),
		Directory: k.Directory, Reboot: rebootProgram(k.StateDir), TraceEndpoint: k.TraceEndpoint,
	}
	return k.startPart(ctx, "scheduler", func(ctx context.Context, ready func()) error {
		return k.Parts.Scheduler(ctx, c, ready)
	})
}

// awaitPermissions waits until the scheduler's roles are effective: those of every client
// are created by a hook of the API server, its own by this process.
func awaitPermissions(ctx context.Context, rc *rest.Config) error {
	a, err := newAPI(rc)
	if err != nil {
		return err
	}
	for _, path := range []string{"/apis", "/apis/" + berthAPI + "/batchjobs?limit=1"} {
		if err := a.awaitPath(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// gate returns the gate by which the scheduler of this process admits BatchJobs; nil:
// the scheduler is another process, and has webhooks.
func (k *cluster) gate() *controlplane.Gate {
	if k.Parts.Scheduler == nil || k.Plain {
		return nil
	}
	if k.jobs == nil {
		k.jobs = &controlplane.Gate{Self: identityScheduler}
	}
	return k.jobs
}

// writeSchedulerArgs writes the flags for cmd/scheduler in a process of its own.
func (k *cluster) writeSchedulerArgs() error {
	args := []string{
		"--kubeconfig=" + k.state.path(FileScheduler),
		"--bind-address=" + strings.TrimPrefix(k.info.PublicURL, "https://"),
		"--public-url=" + k.info.PublicURL,
		"--pod-url=" + k.info.PodURL,
		"--kube-url=" + k.info.KubeURL,
		"--tls-cert-file=" + k.pki.Path(certQueue+".crt"),
		"--tls-key-file=" + k.pki.Path(certQueue+".key"),
		"--tls-ca-file=" + k.pki.Path("ca.crt"),
		"--default-profile",
		"--webhook-front-proxy",
		"--identity=local",
		"--accounting-storage=" + cmp.Or(k.Accounting, k.state.path(fileAccounting)),
		"--accounting-archive=" + k.state.path(dirArchive),
		"--reboot-program=" + rebootProgram(k.StateDir),
	}
	if k.Directory != "" {
		args = append(args, "--directory="+k.Directory, "--user-namespaces")
	}
	if k.TraceEndpoint != "" {
		args = append(args, "--trace-endpoint="+k.TraceEndpoint)
	}
	return k.state.write(FileSchedulerArgs, []byte(strings.Join(args, "\n")+"\n"))
}

// SchedulerArgs returns the flags for a scheduler outside of the cluster in dir.
func SchedulerArgs(dir string) ([]string, error) {
	data, err := os.ReadFile(dir + "/" + FileSchedulerArgs)
	if err != nil {
		return nil, fmt.Errorf("the cluster has not been started: %w", err)
	}
	args := strings.Fields(string(data))
	if len(args) == 0 {
		return nil, fmt.Errorf("%s/%s is empty; start the cluster again", dir, FileSchedulerArgs)
	}
	return args, nil
}
