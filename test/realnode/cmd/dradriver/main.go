// Command dradriver is a driver for dynamic resource allocation whose devices are a file: it
// publishes the devices in the file, and follows its changes, until the file is deleted. A
// container with a device has its name in DRA_DEVICE_NAME=name. Devices whose names are in
// another file cannot be prepared.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// driverName is the name of the driver.
const driverName = "gpu.example.com"

// cdiDir is where containerd looks for devices.
const cdiDir = "/run/cdi"

// poll is the time between two looks at the file.
const poll = 200 * time.Millisecond

func main() {
	kubeconfig := flag.String("kubeconfig", "", "connection to the API server")
	node := flag.String("node", "", "name of the node")
	file := flag.String("devices", "", "file with the devices, a JSON array of resource.k8s.io/v1 Device")
	broken := flag.String("broken", "", "file with the names of the devices that cannot be prepared; none without it")
	flag.Parse()
	p := &plugin{broken: *broken}
	fmt.Fprintln(os.Stderr, "dradriver:", p.run(context.Background(), *kubeconfig, *node, *file))
	os.Exit(1)
}

// run waits for the file, and is the driver while it exists, again and again. It returns only
// with an error.
func (p *plugin) run(ctx context.Context, kubeconfig, node, file string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for ; ; time.Sleep(poll) {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := p.serve(ctx, client, node, file); err != nil {
			return err
		}
	}
}

// serve is the driver until the file is deleted.
func (p *plugin) serve(ctx context.Context, client kubernetes.Interface, node, file string) error {
	data := filepath.Join(kubeletplugin.KubeletPluginsDir, driverName)
	if err := errors.Join(os.MkdirAll(cdiDir, 0o755), os.MkdirAll(data, 0o755)); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, p, kubeletplugin.DriverName(driverName),
		kubeletplugin.NodeName(node), kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(data))
	if err != nil {
		return err
	}
	defer helper.Stop()
	var last []byte
	for ; ; time.Sleep(poll) {
		now, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || bytes.Equal(now, last) {
			continue
		}
		var devices []resourcev1.Device
		if err := json.Unmarshal(now, &devices); err != nil {
			continue // it is being written
		}
		last = now
		if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
			node: {Slices: []resourceslice.Slice{{Devices: devices}}}}}); err != nil {
			return err
		}
	}
}

// plugin prepares claims.
type plugin struct {
	broken string // file with the names of devices that cannot be prepared
}

// PrepareResourceClaims describes the devices of each claim to the container runtime.
func (p *plugin) PrepareResourceClaims(
	_ context.Context, claims []*resourcev1.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	out := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		out[c.UID] = p.prepare(c)
	}
	return out, nil
}

type object = map[string]any

func (p *plugin) prepare(c *resourcev1.ResourceClaim) (result kubeletplugin.PrepareResult) {
	var described []object
	broken, err := os.ReadFile(p.broken)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return kubeletplugin.PrepareResult{Err: err}
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != driverName {
			continue
		}
		if slices.Contains(strings.Fields(string(broken)), r.Device) {
			return kubeletplugin.PrepareResult{Err: fmt.Errorf("device %s does not answer", r.Device)}
		}
		name := string(c.UID) + "-" + r.Device
		variable := "DRA_DEVICE_" + strings.ReplaceAll(r.Device, "-", "_") + "=" + r.Device
		described = append(described, object{
			"name": name, "containerEdits": object{"env": []string{variable}},
		})
		result.Devices = append(result.Devices, kubeletplugin.Device{
			Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device,
			CDIDeviceIDs: []string{driverName + "/gpu=" + name},
		})
	}
	spec, err := json.Marshal(object{"cdiVersion": "0.6.0", "kind": driverName + "/gpu", "devices": described})
	if err == nil {
		err = os.WriteFile(cdiFile(c.UID), spec, 0o644)
	}
	result.Err = err
	return result
}

// UnprepareResourceClaims removes what PrepareResourceClaims wrote.
func (p *plugin) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	out := map[types.UID]error{}
	for _, c := range claims {
		err := os.Remove(cdiFile(c.UID))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		out[c.UID] = err
	}
	return out, nil
}

// HandleError reports errors in the background to the log.
func (p *plugin) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, "dradriver:", message+":", err)
}

func cdiFile(claim types.UID) string {
	return filepath.Join(cdiDir, driverName+"-"+string(claim)+".json")
}
