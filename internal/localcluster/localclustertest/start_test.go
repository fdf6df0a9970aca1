package localclustertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/localclustertest"
	"github.com/berth-hpc/berth/internal/wire"
)

// served fails the test unless the queue API and admission respond to the first request.
func served(t *testing.T, c *localclustertest.Cluster) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	get := client.CoreV1().RESTClient().Get().AbsPath(wire.QueueRoot + "/nodes")
	if data, err := get.DoRaw(t.Context()); err != nil || !strings.Contains(string(data), `"n2"`) {
		t.Errorf("queue: %v %s", err, data)
	}
	me, err := localcluster.Current()
	if err != nil {
		t.Fatal(err)
	}
	post := client.CoreV1().RESTClient().Post().AbsPath("/apis/berth.hpc/v1alpha1/namespaces/"+me.Namespace()+"/batchjobs").
		Param("dryRun", "All").
		Body([]byte(`{"apiVersion":"berth.hpc/v1alpha1","kind":"BatchJob","metadata":{"name":"j-first"},"spec":{"job":{"name":"first","batch":{"workDir":"/"}}}}`))
	if data, err := post.DoRaw(t.Context()); err != nil || !strings.Contains(string(data), `"jobID":`) {
		t.Errorf("admission: %v %s", err, data)
	}
}

func nodeNames(t *testing.T, c *localclustertest.Cluster) []string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
	}
	return names
}

// TestStart starts two clusters in one process, one after the other; the second has no scheduler.
func TestStart(t *testing.T) {
	t.Run("whole", func(t *testing.T) {
		c := localclustertest.Start(t, localclustertest.Nodes(2, 4, 1000))
		served(t, c)
		if got := nodeNames(t, c); !slices.Equal(got, []string{"n1", "n2"}) {
			t.Errorf("nodes %v", got)
		}
	})
	t.Run("without a scheduler", func(t *testing.T) {
		c := localclustertest.Start(t, localclustertest.WithoutScheduler, localclustertest.Nodes(0, 0, 0))
		if args, err := localcluster.SchedulerArgs(c.StateDir); err != nil || len(args) == 0 {
			t.Errorf("%v %v", args, err)
		}
	})
}
