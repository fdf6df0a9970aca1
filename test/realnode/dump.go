package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dump writes what helps to find an error in a site: the objects of a namespace, its
// events, the containers' logs, and the ends of the daemons' logs.
func (s *Site) Dump(ctx context.Context, w io.Writer, namespace string) {
	if s.Client != nil {
		s.dumpObjects(ctx, w, namespace)
		s.dumpPods(ctx, w, namespace)
	}
	_ = filepath.WalkDir(filepath.Join(s.Dir, "logs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".log") {
			dumpFile(w, path)
		}
		return nil
	})
	dumpFile(w, filepath.Join(s.Dir, "state", "log"))
}

func dumpFile(w io.Writer, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	fmt.Fprintf(w, "=== %s (its end)\n%s\n", path, tail(b, 6000))
}

func (s *Site) dumpObjects(ctx context.Context, w io.Writer, namespace string) {
	for _, path := range []string{
		"/apis/berth.hpc/v1alpha1/namespaces/" + namespace + "/batchjobs",
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + namespace + "/jobsets",
		"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/" + namespace + "/podgroups",
		"/api/v1/nodes",
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
	} {
		b, err := s.Client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		fmt.Fprintf(w, "=== %s %v\n%s", path, err, shorten(b))
	}
	events, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintln(w, "=== events:", err)
		return
	}
	fmt.Fprintln(w, "=== events")
	for _, e := range events.Items {
		fmt.Fprintf(w, "%s %s/%s %s: %s\n", e.LastTimestamp.Format("15:04:05"), e.InvolvedObject.Kind,
			e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// shorten returns a list with one line per object, without what only programs read.
func shorten(list []byte) string {
	var l struct {
		Items []struct{ Metadata, Spec, Status object }
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return string(list) + "\n"
	}
	var lines strings.Builder
	for _, o := range l.Items {
		delete(o.Metadata, "managedFields")
		delete(o.Spec, "environment")
		delete(o.Spec, "script")
		line, _ := json.Marshal(o)
		fmt.Fprintf(&lines, "%s\n", line)
	}
	return lines.String()
}

func (s *Site) dumpPods(ctx context.Context, w io.Writer, namespace string) {
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintln(w, "=== pods:", err)
		return
	}
	for _, p := range pods.Items {
		fmt.Fprintf(w, "=== pod %s on %q: %s\n", p.Name, p.Spec.NodeName, p.Status.String())
		log, err := s.Client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		fmt.Fprintf(w, "log: %s %v\n", log, err)
	}
}
