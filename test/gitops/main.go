// Command gitops does what Flux's kustomize-controller does with a file of objects: it detects drift
// and applies, with Flux's own library. It prints the action for each object.
//
//	gitops diff|apply KUBECONFIG FILE
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ifNotPresent is the annotation with which Flux creates objects and then leaves them alone.
var ifNotPresent = map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verb, kubeconfig, file string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	objects, err := utils.ReadObjects(f)
	if err != nil {
		return err
	}
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	m := ssa.NewResourceManager(c, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	m.SetOwnerLabels(objects, "site", "flux-system")
	if verb == "diff" {
		return diff(ctx, m, objects)
	}
	set, err := m.ApplyAllStaged(ctx, objects, applyOptions())
	if err != nil {
		return err
	}
	for _, e := range set.Entries {
		fmt.Println(e.Subject, e.Action)
	}
	return nil
}

// applyOptions are those of kustomize-controller.
func applyOptions() ssa.ApplyOptions {
	o := ssa.DefaultApplyOptions()
	o.IfNotPresentSelector = ifNotPresent
	o.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{"kubectl.kubernetes.io/last-applied-configuration"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}
	return o
}

func diff(ctx context.Context, m *ssa.ResourceManager, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		e, _, _, err := m.Diff(ctx, o, ssa.DiffOptions{IfNotPresentSelector: ifNotPresent})
		if err != nil {
			return err
		}
		fmt.Println(e.Subject, e.Action)
	}
	return nil
}
