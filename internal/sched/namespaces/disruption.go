package namespaces

import (
	"context"
	"math"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// DisruptionBudgetName is the name of the PodDisruptionBudget by which evictions wait for
// the jobs of a user.
const DisruptionBudgetName = "berth-jobs"

// protectJobs creates the budget in the user's namespace. One that exists is kept, so that
// a site may change it.
func (c *Controller) protectJobs(ctx context.Context, u *v1alpha1.User) error {
	if !c.settings.ProtectJobs {
		return nil
	}
	// Pods of Jobs have no scale, so that maxUnavailable does not apply to them
	// (https://kubernetes.io/docs/tasks/run-application/configure-pdb, "Arbitrary workloads").
	every := intstr.FromInt32(math.MaxInt32)
	err := c.cluster.Client.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.Spec.Namespace, Name: DisruptionBudgetName, Labels: map[string]string{labelPart: "berth"},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &every,
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: wire.LabelJobID, Operator: metav1.LabelSelectorOpExists},
			}},
		},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// unprotectJobs deletes the budgets that a process with ProtectJobs has created. A process
// that may not list budgets has created none.
func (c *Controller) unprotectJobs(ctx context.Context) error {
	if c.settings.ProtectJobs {
		return nil
	}
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := c.cluster.Client.List(ctx, budgets, client.MatchingLabels{labelPart: "berth"}); err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return err
	}
	for i := range budgets.Items {
		if budgets.Items[i].Name != DisruptionBudgetName {
			continue
		}
		if err := c.cluster.Client.Delete(ctx, &budgets.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
