package operations_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// A long reason of a node is cut between two characters.
func TestLongReasonOfANode(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c := clusterOf(fake.Cluster(interceptor.Funcs{}, n))
	op := status.Operation{
		Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{"n1"},
		Set: map[string]string{"State": "DRAIN", "Reason": "x" + strings.Repeat("ü", 300)},
	}
	if got := c.operation(t, "opal", op); got.Error != "" {
		t.Fatal(got.Error)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		t.Fatal(err)
	}
	reason := n.Annotations[wire.AnnotationReason]
	if !utf8.ValidString(reason) || strings.ContainsRune(reason, utf8.RuneError) || !strings.HasPrefix(reason, "xü") {
		t.Errorf("%q", reason)
	}
}
