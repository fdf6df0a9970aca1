package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/localcluster/pki"
	"github.com/berth-hpc/berth/internal/wire"
)

// Release is the name under which Berth is installed by Helm.
const Release = "berth"

// recordsDir is where the accounting database is, on the shared file system.
const recordsDir = "/home/.records"

// storageClass is that of the site's one volume.
const storageClass = "site"

// The classes of the site's devices.
const (
	deviceClass = "sim"
	secondClass = "roce"
)

// watchers is the namespace whose pods may read metrics.
const watchers = "watchers"

// schedulerID is the uid of the chart's scheduler.
const schedulerID = 65532

// publish makes the API server reachable by its Service, which it does itself if it
// does not share a machine with others.
func (s *Site) publish(ctx context.Context) error {
	server, err := s.plane.podServer()
	if err != nil {
		return err
	}
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		return err
	}
	name, port := "https", int32(number)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "kubernetes",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{u.Hostname()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	_, err = s.Client.DiscoveryV1().EndpointSlices("default").Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// addVolume creates the volume for accounting records.
func (s *Site) addVolume(ctx context.Context) error {
	if err := errors.Join(os.MkdirAll(recordsDir, 0o700),
		os.Chown(recordsDir, schedulerID, schedulerID)); err != nil {
		return err
	}
	directory := corev1.HostPathDirectory
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "records"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: storageClass,
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: recordsDir, Type: &directory}},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
	}}
	if _, err := s.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.addClass(ctx)
}

// values are those of the chart for this site.
func (s *Site) values(users []User) object {
	var people []object
	for _, u := range users {
		people = append(people, object{"name": u.Name, "uid": u.ID, "adminLevel": u.level(),
			"keys": append([]string{}, u.Keys...)})
	}
	onFirst, few := object{"kubernetes.io/hostname": nodeNames[0]},
		object{"requests": object{"cpu": nil, "memory": "64Mi"}}
	return object{
		"users":      people,
		"image":      object{"registry": registry, "tag": tag},
		"partitions": partitions(),
		"jobs":       object{"image": SystemImage, "allowImages": []string{registry + "/*"}},
		// The devices of the driver in cmd/dradriver.
		"cluster": object{"devices": []object{
			{"name": "gpu", "type": "sim", "resource": "deviceclass.resource.kubernetes.io/" + deviceClass},
			{"name": "nic", "resource": "deviceclass.resource.kubernetes.io/" + secondClass},
		}},
		"accounting": object{"sqlite": object{"storageClass": storageClass}},
		// The API server's, which is no pod.
		"networkPolicy": object{"enabled": true, "apiServerCIDRs": []string{SiteAddress + "/32"},
			"metricsFrom": []object{{
				"namespaceSelector": object{"matchLabels": object{corev1.LabelMetadataName: watchers}},
			}}},
		// Tests take the last nodes away, and they want all of a node's CPUs.
		"login":     object{"nodeSelector": onFirst, "resources": few, "service": object{"type": "ClusterIP"}},
		"scheduler": object{"nodeSelector": onFirst, "resources": few},
	}
}

// Partitions besides the default one, with all nodes as well.
const (
	// ShellPartition runs jobs in ShellImage.
	ShellPartition = "shell"
	// ReadOnlyPartition gives jobs a root file system that they cannot write to.
	ReadOnlyPartition = "readonly"
	// StrictPartition takes homes from a claim of the user's namespace, as namespaces
	// that enforce the restricted standard require.
	StrictPartition = "strict"
	// homeClaim is that claim.
	homeClaim = "home"
)

func partitions() object {
	homes := []object{{"name": "home", "mountPath": "/home"}}
	with := func(spec object) object { return object{"nodes": "ALL", "template": object{"spec": spec}} }
	return object{
		"main": object{"default": true, "nodes": "ALL"},
		ShellPartition: with(object{"containers": []object{{"name": "job", "image": ShellImage,
			"volumeMounts": homes}}}),
		ReadOnlyPartition: with(object{"containers": []object{{"name": "job", "image": SystemImage,
			"volumeMounts":    homes,
			"securityContext": object{"readOnlyRootFilesystem": true}}}}),
		StrictPartition: with(object{"volumes": []object{{"name": "home",
			"persistentVolumeClaim": object{"claimName": homeClaim}}}}),
	}
}

// Install installs Berth by its chart and returns when jobs can be submitted.
func (s *Site) Install(ctx context.Context) error {
	if err := s.addVolume(ctx); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	file := filepath.Join(s.Dir, "values.json")
	if err := s.writeValues(file); err != nil {
		return err
	}
	began := time.Now()
	if _, err := s.Helm(ctx, "install", Release, s.chart, "--create-namespace", "--values="+file, "--wait",
		"--timeout=3m"); err != nil {
		return err
	}
	progress("installed by Helm in %.1f s", time.Since(began).Seconds())
	if err := s.addKubeconfigs(); err != nil {
		return err
	}
	return s.waitAnswers(ctx)
}

// writeValues writes the chart's values for this site, as JSON, which is YAML.
func (s *Site) writeValues(file string) error {
	values, err := json.Marshal(s.values(s.users))
	if err != nil {
		return err
	}
	return os.WriteFile(file, values, 0o644)
}

// Helm runs Helm as the administrator, in Berth's namespace, and returns its output.
func (s *Site) Helm(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.tools.Helm, append(args, "--namespace="+wire.SystemNamespace)...)
	cmd.Env = s.adminEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// adminEnv is the environment of the administrator's commands.
func (s *Site) adminEnv() []string {
	helm := s.Dir + "/helm"
	return append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HELM_CACHE_HOME="+helm, "HELM_CONFIG_HOME="+helm,
		"HELM_DATA_HOME="+helm)
}

// addKubeconfigs gives every user of the site the connection that a login node
// would.
func (s *Site) addKubeconfigs() error {
	store, err := pki.Open(filepath.Join(s.plane.state, statePKI), time.Now, pki.LeafLife)
	if err != nil {
		return err
	}
	for _, u := range s.users {
		pair, err := store.CA.Sign(pki.Leaf{CommonName: u.Name})
		if err != nil {
			return err
		}
		dir := filepath.Join(u.Home(), ".kube")
		data := pki.Kubeconfig(s.Rest.Host, store.CA.CertPEM, pair, u.Name, "user-"+u.Name, pki.Direct{})
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config"), data, 0o600),
			os.Chown(dir, int(u.ID), int(u.ID)), os.Chown(filepath.Join(dir, "config"), int(u.ID), int(u.ID)))
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", u.Name, err)
		}
	}
	return nil
}

// waitAnswers waits until every user can query the queue, which the API server and
// Berth need a moment for: bindings, webhooks, the aggregated API.
func (s *Site) waitAnswers(ctx context.Context) error {
	for _, u := range s.users {
		var last error
		err := waitFor(ctx, time.Minute, func() bool {
			if _, last = s.As(ctx, u, u.Home(), "sbatch", "--test-only", "-N1", "--wrap=true"); last == nil {
				return true
			}
			// What --test-only says is on standard error, with success or not.
			return strings.Contains(last.Error(), "to start at")
		})
		if err != nil {
			return fmt.Errorf("%s cannot submit: %w: %w", u.Name, err, last)
		}
	}
	return nil
}

// KillScheduler kills the leading pod as a crash of its node would, without a graceful
// stop; its Deployment creates another.
func (s *Site) KillScheduler(ctx context.Context) error {
	now := int64(0)
	return s.Client.CoreV1().Pods(wire.SystemNamespace).DeleteCollection(ctx,
		metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{LabelSelector: wire.LabelLeader + "=true"})
}
