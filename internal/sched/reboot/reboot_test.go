package reboot

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

// The program is run once for all nodes that are free, and again only if it failed.
func TestProgramIsRunForFreeNodes(t *testing.T) {
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "reboot"), filepath.Join(dir, "calls")
	fails := filepath.Join(dir, "fails")
	text := "#!/bin/sh\necho \"$@\" >>" + calls + "\n[ ! -e " + fails + " ]\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName}}
	settings.Spec.RebootProgram = program
	objects := []client.Object{settings}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := node(&wire.NodeReboot{}, "", "x")
		n.Name = name
		objects = append(objects, n)
	}
	c := fake.Cluster(interceptor.Funcs{}, objects...)
	leads := true
	x := New(c, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	x.Leads = func() bool { return leads }
	fake.Feed(c, settings)
	for _, name := range []string{"n1", "n2", "n3"} {
		c.Nodes.Apply(stored(t, c, name))
	}
	j := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "user-a"}}
	j.Spec.JobID, j.Status.State = 7, v1alpha1.StateRunning
	j.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n2", Node: "n2"}}}
	fake.Feed(c, j)

	x.Update(t.Context())
	leads = false
	if x.act(t.Context()) == nil {
		t.Error("a process that may not lead runs the program")
	}
	leads = true
	if err := os.WriteFile(fails, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if x.act(t.Context()) == nil {
		t.Error("the failure of the program is not noticed")
	}
	if err := os.Remove(fails); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.act(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(calls); err != nil || string(got) != "n1,n3\nn1,n3\n" {
		t.Errorf("the program was run with %q (%v)", got, err)
	}
	c.Jobs.Remove(j, start)
	x.Update(t.Context())
	if r := wire.ParseNodeReboot(stored(t, c, "n2").Annotations); r == nil || r.Issued == nil || r.Accepted {
		t.Errorf("the node whose job has ended: %+v", r)
	}
	if r := wire.ParseNodeReboot(stored(t, c, "n1").Annotations); r == nil || !r.Accepted {
		t.Errorf("the node that reboots: %+v", r)
	}
}

func stored(t *testing.T, c *control.Cluster, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		t.Fatal(err)
	}
	return n
}

// While the program runs, a node that has returned already gets no job: the program might
// reboot it again.
func TestNodeIsKeptWhileTheProgramRuns(t *testing.T) {
	n := node(&wire.NodeReboot{}, "", "x")
	c := fake.Cluster(interceptor.Funcs{}, n)
	c.RebootProgram = "/reboot"
	x := New(c, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	c.Nodes.Apply(stored(t, c, "n1"))
	x.Update(t.Context())
	returned := func() {
		n := stored(t, c, "n1")
		n.Status.NodeInfo.BootID = "second"
		if err := c.Client.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		c.Nodes.Apply(n)
	}
	x.Perform = func(context.Context, string, []string) error {
		returned()
		if due := x.Update(t.Context()); !due.After(start) {
			t.Errorf("looked at again at %v", due)
		}
		if got := stored(t, c, "n1").Annotations[wire.AnnotationState]; got != "down" {
			t.Errorf("while the program runs the node is %q", got)
		}
		return nil
	}
	if err := x.act(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.Update(t.Context())
	if got := state(stored(t, c, "n1")); got != "|" {
		t.Errorf("afterwards the node is %q", got)
	}
}
