package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Site is a running cluster. It ends with the program.
type Site struct {
	Dir        string // directory of everything; daemons log in Dir/logs
	Bin        string // directory of the commands that users and jobs have
	Kubeconfig string // the administrator's
	Rest       *rest.Config
	Client     kubernetes.Interface

	build    string // directory of everything that was built
	chart    string // directory of the chart
	tools    tools
	plane    *plane
	nodes    []*node
	enforcer *enforcer
	users    []User
	hardware map[string]Hardware
}

// Options describe a site.
type Options struct {
	// Bin is the directory of Berth's static binaries.
	Bin string
	// Users are the users of the site's login side and of the cluster.
	Users []User
	// Hardware has what differs from the default, by the node's name.
	Hardware map[string]Hardware
}

// Open starts the control plane and the nodes and returns when all nodes are
// ready. It may be called once, in a program started by Run. If the
// nodes do not start in time, Open tries once more. It may return a Site with an
// error, for Dump.
func Open(ctx context.Context, o Options) (*Site, error) {
	s := &Site{Dir: os.Getenv(dirVariable), build: o.Bin, users: o.Users, hardware: o.Hardware}
	s.Bin = filepath.Join(s.Dir, "bin")
	began := time.Now()
	images, err := s.prepare(ctx, o)
	if err != nil {
		return s, err
	}
	if err := s.startPlane(ctx); err != nil {
		return s, err
	}
	progress("control plane ready after %.1f s", time.Since(began).Seconds())
	if err := s.startNodes(ctx, images); err != nil {
		progress("%v; starting the nodes again", err)
		s.stopNodes()
		if err := s.startNodes(ctx, images); err != nil {
			return s, err
		}
	}
	progress("%d nodes ready after %.1f s", len(s.nodes), time.Since(began).Seconds())
	if err := s.startEnforcer(ctx); err != nil {
		return s, err
	}
	return s, s.startDNS(ctx)
}

// prepare creates the site's directories, accounts and the archive of all images.
func (s *Site) prepare(ctx context.Context, o Options) (images string, err error) {
	if s.tools, err = prepared(ctx); err != nil {
		return "", err
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	s.chart = filepath.Join(root, "deploy", "chart")
	if err := os.MkdirAll(filepath.Join(s.Dir, "logs"), 0o755); err != nil {
		return "", err
	}
	for _, u := range o.Users {
		if err := addAccount(u); err != nil {
			return "", fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	if err := copyCommands(s.build, s.Bin); err != nil {
		return "", err
	}
	archive := filepath.Join(s.Dir, "images.tar")
	return archive, s.tools.writeImages(ctx, archive, root, s.build)
}

func (s *Site) startPlane(ctx context.Context) (err error) {
	if s.plane, err = startPlane(ctx, s.build, filepath.Join(s.Dir, "state"), s.log("berth-local")); err != nil {
		return err
	}
	s.Kubeconfig = s.plane.kubeconfig()
	if s.Rest, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
		return err
	}
	s.Rest.QPS, s.Rest.Burst = 200, 400
	if s.Client, err = kubernetes.NewForConfig(s.Rest); err != nil {
		return err
	}
	return errors.Join(s.publish(ctx), s.startProxy())
}

func (s *Site) log(name string) string { return filepath.Join(s.Dir, "logs", name+".log") }

// startNodes starts all nodes and waits until they are ready.
func (s *Site) startNodes(ctx context.Context, images string) error {
	for i, name := range nodeNames {
		logs := filepath.Join(s.Dir, "logs", name)
		if err := os.MkdirAll(logs, 0o755); err != nil {
			return err
		}
		spec := nodeSpec{
			Name: name, Index: i, Logs: logs, Images: images,
			Kubelet: s.tools.Kubelet, KubeProxy: s.tools.KubeProxy, Containerd: s.tools.Containerd,
			Driver: s.tools.Driver,
			Cgroup: filepath.Join(filepath.Base(s.Dir), name), Hardware: s.hardware[name],
		}
		if err := s.plane.admit(&spec, logs); err != nil {
			return err
		}
		n, err := startNode(spec)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		s.nodes = append(s.nodes, n)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range s.nodes {
		g.Go(func() error { return s.waitReady(ctx, n) })
	}
	return g.Wait()
}

func (s *Site) stopNodes() {
	for _, n := range s.nodes {
		n.stop()
	}
	s.nodes = nil
}

// waitReady waits for a node to be Ready.
func (s *Site) waitReady(ctx context.Context, n *node) error {
	ended := false
	err := waitFor(ctx, 90*time.Second, func() bool {
		ended = n.ended()
		return ended || s.nodeReady(ctx, n.spec.Name)
	})
	if ended {
		err = errors.New("its process ended: " + lastWords(filepath.Join(n.spec.Logs, "node.log")))
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.spec.Name, err)
	}
	return nil
}

func (s *Site) nodeReady(ctx context.Context, name string) bool {
	node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func lastWords(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(tail(b, 500))
}
