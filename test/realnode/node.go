package realnode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nodeVariable carries a node's nodeSpec as JSON.
const nodeVariable = "BERTH_REALNODE_NODE"

// nodeSpec is the configuration of the process of a node.
type nodeSpec struct {
	Name       string
	Index      int    // from 0
	Kubelet    string // the binary
	KubeProxy  string // the binary
	Containerd string // directory with containerd, its shim and ctr
	Driver     string // the binary of the driver of devices
	Cgroup     string // root of the node's control groups
	Logs       string // directory for the logs of the node's daemons
	Images     string // archive to import
	Kubeconfig string // the kubelet's
	Cert, Key  string // the kubelet's server certificate
	Hardware   Hardware
}

func (s nodeSpec) address() string { return fmt.Sprintf("172.29.0.%d", 11+s.Index) }

// devices is the file with the devices of the node's driver, which does nothing without it.
func (s nodeSpec) devices() string { return filepath.Join(s.Logs, "devices.json") }

// brokenDevices is the file with the names of the devices that the driver cannot prepare.
func (s nodeSpec) brokenDevices() string { return filepath.Join(s.Logs, "broken-devices") }

func (s nodeSpec) podSubnet() string { return fmt.Sprintf("172.29.%d.0/24", 101+s.Index) }

// gateway is the node's own address among its pods.
func (s nodeSpec) gateway() netip.Addr { return netip.MustParsePrefix(s.podSubnet()).Addr().Next() }

// node is a running node.
type node struct {
	spec nodeSpec
	*process
}

// startNode starts the node's process in its own namespaces and plugs it into
// the site's bridge.
func startNode(spec nodeSpec) (*node, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+roleNode, nodeVariable+"="+string(b))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	gate, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p, err := start(cmd, filepath.Join(spec.Logs, "node.log"))
	if err != nil {
		return nil, err
	}
	n := &node{spec: spec, process: p}
	if err := plug(spec, cmd.Process.Pid); err != nil {
		n.stop()
		return nil, err
	}
	if _, err := fmt.Fprintln(gate, "go"); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// stop kills the node's own process; its daemons die with it, its containers
// with the site.
func (n *node) stop() {
	n.kill()
	_ = n.unplug()
}

// unplug takes the node off the network for good, as if it had died.
func (n *node) unplug() error { return ip("link del veth" + strconv.Itoa(n.spec.Index)) }

// plug connects the network namespace of process pid with the bridge.
func plug(spec nodeSpec, pid int) error {
	veth := "veth" + strconv.Itoa(spec.Index)
	return ip(
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", veth, pid),
		fmt.Sprintf("link set %s master %s up", veth, bridge),
		fmt.Sprintf("route replace %s via %s", spec.podSubnet(), spec.address()),
	)
}

// restartFile in the directory of a node's logs makes the node start daemons again that end,
// as systemd does. Without it the node ends with them.
const restartFile = "restart"

// restartDelay is the time between the end of a daemon and its next start.
const restartDelay = time.Second

// runNode is the process of a node: it waits for its network, then runs
// containerd and the kubelet until one of them ends for good.
func runNode() error {
	var spec nodeSpec
	if err := json.Unmarshal([]byte(os.Getenv(nodeVariable)), &spec); err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the network: %w", err)
	}
	if err := enterNode(spec); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan daemonEnd, 3)
	start := func(name string) error {
		command := map[string][]string{
			"containerd": {filepath.Join(spec.Containerd, "containerd"), "--config", containerdFile},
			"kubelet":    append([]string{spec.Kubelet}, spec.kubeletFlags()...),
			"kube-proxy": {spec.KubeProxy, "--config=" + proxyFile},
		}[name]
		return daemon(ctx, spec, ended, name, command[0], command[1:]...)
	}
	if err := start("containerd"); err != nil {
		return err
	}
	if err := waitFor(ctx, time.Minute, func() bool { return exists(containerdSocket) }); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := importImages(ctx, spec); err != nil {
		return err
	}
	if err := errors.Join(start("kubelet"), start("kube-proxy")); err != nil {
		return err
	}
	driverEnded := make(chan daemonEnd, 1) // the node goes on without it
	if err := daemon(ctx, spec, driverEnded, "dradriver", spec.Driver, "-kubeconfig="+spec.Kubeconfig,
		"-node="+spec.Name, "-devices="+spec.devices(), "-broken="+spec.brokenDevices()); err != nil {
		return err
	}
	for d := range ended {
		if !exists(filepath.Join(spec.Logs, restartFile)) {
			return d.err
		}
		time.Sleep(restartDelay)
		if err := start(d.name); err != nil {
			return err
		}
	}
	return nil
}

// daemonEnd is the end of a daemon.
type daemonEnd struct {
	name string
	err  error
}

// enterNode makes the node's namespaces look like a machine of their own.
func enterNode(spec nodeSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mountEmpty(privateDirs); err != nil {
		return err
	}
	if err := spec.Hardware.show(); err != nil {
		return err
	}
	// As on a machine with systemd: containers with mount propagation see later mounts.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return err
	}
	if err := spec.writeConfig(); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	return ip("link set lo up", "addr add "+spec.address()+"/24 dev eth0", "link set eth0 up",
		"route add default via "+SiteAddress)
}

// daemon starts a program that dies with this process, its output in the log
// directory under name; its end is sent to ended.
func daemon(ctx context.Context, spec nodeSpec, ended chan<- daemonEnd, name, program string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(spec.Logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(),
		"PATH="+spec.Containerd+":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
	cmd.Stdout, cmd.Stderr = log, log
	started := make(chan error, 1)
	go func() { started <- runLocked(cmd, name, ended) }()
	return <-started
}

// runLocked starts cmd from a thread that stays until cmd ends, because the
// kernel sends the death signal when the starting thread ends.
func runLocked(cmd *exec.Cmd, name string, ended chan<- daemonEnd) error {
	result := make(chan error, 1)
	go func() {
		lockThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err := cmd.Start()
		result <- err
		if err == nil {
			_ = cmd.Wait() // the state says more
			ended <- daemonEnd{name, fmt.Errorf("%s ended: %s", name, cmd.ProcessState)}
		}
	}()
	return <-result
}

// importImages loads the images into containerd.
func importImages(ctx context.Context, spec nodeSpec) error {
	cmd := exec.CommandContext(ctx, filepath.Join(spec.Containerd, "ctr"),
		"--address", containerdSocket, "-n", "k8s.io", "images", "import", "--local", spec.Images)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s: %w: %s", spec.Images, err, out)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
