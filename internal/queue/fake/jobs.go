package fake

import (
	"context"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// AssignUIDs gives every object that is created a UID, as the API server does.
var AssignUIDs = interceptor.Funcs{
	Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetUID(types.UID("uid-" + o.GetName()))
		return c.Create(ctx, o, opts...)
	},
}

// Job returns a job of the user in the partition main; change may be nil.
func Job(id int64, user string, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	name := "j-" + strconv.FormatInt(id, 10)
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "user-" + user, UID: types.UID("uid-" + name)},
	}
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main"}
	if change != nil {
		change(b)
	}
	return b
}

// InState returns a change that puts a job into the state, in its first attempt.
func InState(state string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.State, b.Status.Attempt = state, 1 }
}

// AddJob stores a job as the client and the store of c have it.
func AddJob(t testing.TB, c *control.Cluster, id int64, user string, change func(*v1alpha1.BatchJob)) {
	t.Helper()
	b := Job(id, user, change)
	status := b.Status
	if err := c.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Status = status
	if err := c.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c.Jobs.Apply(b.DeepCopy())
}

// StoredJob returns the job as the client has it.
func StoredJob(t testing.TB, c *control.Cluster, id int64) *v1alpha1.BatchJob {
	t.Helper()
	known, ok := c.Job(id)
	if !ok {
		t.Fatalf("there is no job %d", id)
	}
	b := &v1alpha1.BatchJob{}
	if err := c.Client.Get(context.Background(), client.ObjectKeyFromObject(known), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// CountReads returns hooks that count the objects that are read from the API server.
func CountReads(n *int) interceptor.Funcs {
	return interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		*n++
		return c.Get(ctx, key, o, opts...)
	}}
}

// ChangeStored changes the job as the client has it and returns it. The store keeps the
// version before, so that the next write of that version is a conflict.
func ChangeStored(t testing.TB, c *control.Cluster, id int64, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	t.Helper()
	b := StoredJob(t, c, id)
	change(b)
	if err := c.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Agents records the commands that are sent to agents. Safe for concurrent use.
type Agents struct {
	mu   sync.Mutex
	sent []wire.Command
}

// Send records a command.
func (a *Agents) Send(_ int64, _ int32, c wire.Command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, c)
}

// Sent returns the commands that were sent.
func (a *Agents) Sent() []wire.Command {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]wire.Command(nil), a.sent...)
}
