package realnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages are Debian's packages for the nodes and for building images, each with a
// file that shows whether it is installed.
var packages = map[string]string{
	"runc":                        "/usr/sbin/runc",
	"containernetworking-plugins": "/usr/lib/cni/bridge",
	"mmdebstrap":                  "/usr/bin/mmdebstrap",
	"iproute2":                    "/sbin/ip",
	"nftables":                    "/usr/sbin/nft",
	"busybox-static":              shell,
}

// tools are the paths of what prepare has built.
type tools struct {
	Kubelet    string // binary
	KubeProxy  string // binary
	Helm       string // binary
	Containerd string // directory of binaries
	System     string // archive of a root file system
	Pause      string // binary
	CoreDNS    string // binary
	Driver     string // binary: a driver of devices
	Kubectl    string // binary; "" without pagesVariable
}

// pagesVariable, when set, has the test follow the administrators' pages, which
// requires kubectl.
const pagesVariable = "BERTH_E2E_PAGES"

// prepare installs packages and fills the cache.
func prepare(ctx context.Context) error {
	_, err := prepared(ctx)
	return err
}

// prepared returns the tools, making those that are not in the cache.
func prepared(ctx context.Context) (tools, error) {
	var t tools
	if err := installPackages(ctx); err != nil {
		return t, err
	}
	root, err := moduleRoot()
	if err != nil {
		return t, err
	}
	type step struct {
		path *string
		make func(context.Context, string) (string, error)
	}
	steps := []step{
		{&t.Kubelet, makeKubelet}, {&t.KubeProxy, makeKubeProxy}, {&t.Helm, makeHelm}, {&t.Containerd, makeContainerd},
		{&t.CoreDNS, makeCoreDNS}, {&t.Pause, makePause}, {&t.System, makeSystem}, {&t.Driver, makeDriver},
	}
	if os.Getenv(pagesVariable) != "" {
		steps = append(steps, step{&t.Kubectl, makeKubectl})
	}
	for _, step := range steps {
		if *step.path, err = step.make(ctx, root); err != nil {
			return t, err
		}
	}
	return t, nil
}

// moduleRoot returns the directory of this module's go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
	}
	return "", errors.New("not inside the module")
}

// installPackages installs missing packages.
func installPackages(ctx context.Context) error {
	var missing []string
	for name, file := range packages {
		if !exists(file) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	progress("installing %s", strings.Join(missing, " "))
	var err error
	for range 3 { // package lists may be missing or old, and mirrors stumble
		if err = aptGet(ctx, append([]string{"install", "--no-install-recommends"}, missing...)); err == nil {
			return nil
		}
		if e := aptGet(ctx, []string{"update"}); e != nil {
			err = errors.Join(err, e)
		}
	}
	return fmt.Errorf("installing packages: %w", err)
}

func aptGet(ctx context.Context, args []string) error {
	flags := []string{"-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}
	return run(ctx, "", []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", append(flags, args...)...)
}

// makeKubelet builds the kubelet of the module's Kubernetes release.
func makeKubelet(ctx context.Context, root string) (string, error) {
	return makeKubernetes(ctx, root, "kubelet")
}

// makeKubectl builds kubectl from the module in this directory.
func makeKubectl(ctx context.Context, root string) (string, error) {
	return makeNested(ctx, root, "kubectl")
}

// makeNested builds the program of the module with that name in this directory.
func makeNested(ctx context.Context, root, name string) (string, error) {
	dir := filepath.Join(root, "test", "realnode", name)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	main, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		return "", err
	}
	return cached(ctx, name, keyOf(string(mod), string(main)), func(ctx context.Context, path string) error {
		return run(ctx, dir, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w", "-o", path, ".")
	})
}

// makeDriver builds the driver of devices.
func makeDriver(ctx context.Context, root string) (string, error) {
	main, err := os.ReadFile(filepath.Join(root, "test", "realnode", "cmd", "dradriver", "main.go"))
	if err != nil {
		return "", err
	}
	version, err := moduleVersion(ctx, root, "k8s.io/dynamic-resource-allocation")
	if err != nil {
		return "", err
	}
	return cached(ctx, "dradriver", keyOf(string(main), version), func(ctx context.Context, path string) error {
		return run(ctx, root, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w", "-o", path,
			"./test/realnode/cmd/dradriver")
	})
}

func moduleVersion(ctx context.Context, root, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", module, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// makeHelm builds Helm from the module beside the tests.
func makeHelm(ctx context.Context, root string) (string, error) {
	dir := filepath.Join(root, "test", "helm")
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	return cached(ctx, "helm", keyOf(string(mod)), func(ctx context.Context, path string) error {
		return run(ctx, dir, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w", "-o", path,
			"helm.sh/helm/v3/cmd/helm")
	})
}

// makeContainerd builds containerd from the module in this directory.
func makeContainerd(ctx context.Context, root string) (string, error) {
	dir := filepath.Join(root, "test", "realnode", "containerd")
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	return cached(ctx, "containerd", keyOf(string(mod)), func(ctx context.Context, path string) error {
		const pkg = "github.com/containerd/containerd/v2/cmd/"
		return run(ctx, dir, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w",
			"-tags", "no_btrfs no_zfs no_devmapper no_aufs", "-o", path+string(filepath.Separator),
			pkg+"containerd", pkg+"containerd-shim-runc-v2", pkg+"ctr")
	})
}

// HelmProgram returns the path of Helm, built from its module where it is not
// in the cache.
func HelmProgram(ctx context.Context) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return makeHelm(ctx, root)
}
