package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// objectsManager owns the fields that come from manifests.
const objectsManager = "berth-objects"

// applyObjects applies the manifests in cfg.Objects. It skips those that were applied
// already, so that changes by an administrator stay until the manifest itself changes.
func applyObjects(ctx context.Context, cfg Config, c client.Client) error {
	if cfg.Objects == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(cfg.Objects, "*.yaml"))
	if err != nil {
		return fmt.Errorf("--objects: %w", err)
	}
	slices.Sort(files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("--objects: %w", err)
		}
		for _, doc := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
			if err := applyObject(ctx, cfg, c, doc); err != nil {
				return fmt.Errorf("--objects: %s: %w", filepath.Base(f), err)
			}
		}
	}
	return nil
}

func applyObject(ctx context.Context, cfg Config, c client.Client, doc []byte) error {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &o.Object); err != nil {
		return err
	}
	if len(o.Object) == 0 {
		return nil
	}
	if o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group || o.GetKind() == "BatchJob" {
		return fmt.Errorf("%s %s is not an object of Berth's configuration", o.GetKind(), o.GetName())
	}
	sum := sha256.Sum256(doc)
	digest := hex.EncodeToString(sum[:16])
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(o.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(o), have)
	switch {
	case err == nil && have.GetAnnotations()[wire.AnnotationApplied] == digest:
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[wire.AnnotationApplied] = digest
	o.SetAnnotations(notes)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership,
		client.FieldOwner(objectsManager)); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	cfg.Log.Info("applied", "kind", o.GetKind(), "name", o.GetName())
	return nil
}
