package operations_test

import (
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// cluster is a cluster in memory with the node n1, the users anna and ben, and the
// operator opal.
type cluster struct {
	*control.Cluster
	service *operations.Service
	agents  fake.Agents
	table   *table.Table
	now     time.Time

	mu    sync.Mutex
	nodes []status.Node
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return clusterOf(fake.Cluster(fake.AssignUIDs))
}

// clusterOf returns the cluster with these stores and this client.
func clusterOf(all *control.Cluster) *cluster {
	c := &cluster{
		Cluster: all, now: time.Now(),
		nodes: []status.Node{{Name: "n1", State: "IDLE", Partitions: []string{"main"}}},
	}
	dir := directory.New(c.Cluster, nil)
	c.table = table.New(c.Cluster, dir, nil)
	c.service = &operations.Service{
		Cluster: c.Cluster, Directory: dir, Table: c.table, Nodes: c.listNodes, Agents: &c.agents,
		Now: func() time.Time { return c.now },
	}
	opal := fake.User("opal", 1003)
	opal.Spec.AdminLevel = directory.LevelOperator
	fake.Feed(c.Cluster, fake.User("anna", 1001), fake.User("ben", 1002), opal)
	return c
}

func (c *cluster) listNodes() []status.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes
}

func (c *cluster) add(t *testing.T, id int64, user string, change func(*v1alpha1.BatchJob)) {
	t.Helper()
	fake.AddJob(t, c.Cluster, id, user, change)
}

// execute returns the outcomes of an operation of the user.
func (c *cluster) execute(t *testing.T, user string, op status.Operation) []status.OperationStatus {
	t.Helper()
	outcomes, err := c.service.Execute(t.Context(), c.service.Directory.Resolve(user, nil), &op)
	if err != nil {
		t.Fatalf("%s %+v: %v", user, op, err)
	}
	return outcomes
}

// operation returns the outcome of an operation on one thing.
func (c *cluster) operation(t *testing.T, user string, op status.Operation) status.OperationStatus {
	t.Helper()
	outcomes := c.execute(t, user, op)
	if len(outcomes) != 1 {
		t.Fatalf("%s %+v: %+v", user, op, outcomes)
	}
	return outcomes[0]
}

// stored returns the spec of the job as the API server has it.
func (c *cluster) stored(t *testing.T, id int64) v1alpha1.BatchJobSpec {
	t.Helper()
	return fake.StoredJob(t, c.Cluster, id).Spec
}

// setState writes the state of a job as the keeper does.
func (c *cluster) setState(t *testing.T, id int64, state string) {
	t.Helper()
	b := fake.StoredJob(t, c.Cluster, id)
	b.Status.State = state
	if err := c.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c.ApplyJob(b)
}
