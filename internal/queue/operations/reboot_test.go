package operations_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// The outcomes are those of Slurm 22.05.8.
func TestRebootIsRequestedAndCancelled(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c := clusterOf(fake.Cluster(interceptor.Funcs{}, n))
	request := func(user, node string, set map[string]string) string {
		t.Helper()
		return c.operation(t, user, status.Operation{
			Verb: status.OpReboot, Entity: status.EntityNode, Targets: []string{node}, Set: set,
		}).Error
	}
	update := func(user, state, reason string) string {
		t.Helper()
		set := map[string]string{"State": state}
		if reason != "" {
			set["Reason"] = reason
		}
		return c.operation(t, user, status.Operation{
			Verb: status.OpUpdate, Entity: status.EntityNode, Targets: []string{"n1"}, Set: set,
		}).Error
	}
	state := func() string {
		t.Helper()
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
			t.Fatal(err)
		}
		text := n.Annotations[wire.AnnotationState] + "|"
		for _, b := range n.Annotations[wire.AnnotationReason] {
			if b == '[' {
				break
			}
			text += string(b)
		}
		if r := wire.ParseNodeReboot(n.Annotations); r != nil {
			text += "|reboot " + r.NextState
		}
		return text
	}
	if got := request("anna", "n1", nil); got != "Permission denied" {
		t.Errorf("a user: %q", got)
	}
	if got := request("opal", "n1", nil); got != "nothing reboots nodes: set rebootProgram of the Cluster" {
		t.Errorf("without a program: %q", got)
	}
	settings := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName}}
	settings.Spec.RebootProgram = "/reboot"
	fake.Feed(c.Cluster, settings)
	for _, x := range []struct {
		do   func() string
		want string // the error, or else the state
	}{
		{func() string { return request("opal", "nosuch", nil) }, "Invalid node name specified"},
		{func() string { return update("opal", "CANCEL_REBOOT", "") }, "Invalid node state specified"},
		{func() string { return request("opal", "n1", nil) }, "|reboot requested |reboot "},
		{func() string { return request("opal", "n1", map[string]string{"ASAP": "1", "Reason": "abc"}) },
			"|reboot requested |reboot "},
		{func() string { return update("anna", "CANCEL_REBOOT", "") }, "Invalid user id"},
		{func() string { return update("opal", "CANCEL_REBOOT", "") }, "|"},
		{func() string { return request("opal", "n1", map[string]string{"ASAP": "1"}) },
			"drain|Reboot ASAP |reboot RESUME"},
		{func() string { return update("opal", "CANCEL_REBOOT", "") }, "|"},
		{func() string {
			return request("opal", "n1", map[string]string{"ASAP": "1", "NextState": "DOWN", "Reason": "abc"})
		},
			"drain|abc |reboot DOWN"},
		{func() string { return update("opal", "CANCEL_REBOOT", "") }, "|"},
		{func() string { return update("opal", "DRAIN", "mine") }, "drain|mine "},
		{func() string { return request("opal", "n1", map[string]string{"NextState": "RESUME"}) },
			"drain|mine |reboot RESUME"},
		{func() string { return update("opal", "CANCEL_REBOOT", "") }, "drain|mine "},
	} {
		got := x.do()
		if got == "" {
			got = state()
		}
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}
