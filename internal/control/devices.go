package control

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Devices has the objects of dynamic resource allocation (DRA). The stores of kinds that the API
// server does not serve are empty.
type Devices struct {
	Slices  *Store[*resourcev1.ResourceSlice]        // by name
	Classes *Store[*resourcev1.DeviceClass]          // by name
	Claims  *Store[*resourcev1.ResourceClaim]        // by namespace/name
	Taints  *Store[*resourcev1beta2.DeviceTaintRule] // by name; not served by default in 1.36
}

func newDevices() Devices {
	return Devices{
		Slices:  NewStore(name[*resourcev1.ResourceSlice]),
		Classes: NewStore(name[*resourcev1.DeviceClass]),
		Claims:  NewStore(func(c *resourcev1.ResourceClaim) string { return c.Namespace + "/" + c.Name }),
		Taints:  NewStore(name[*resourcev1beta2.DeviceTaintRule]),
	}
}

// watch fills the stores from watches of the kinds that the API server serves.
func (d *Devices) watch(
	ctx context.Context, k cache.Cache, served meta.RESTMapper,
) (synced []toolscache.InformerSynced, err error) {
	v1, v1beta2 := resourcev1.SchemeGroupVersion, resourcev1beta2.SchemeGroupVersion
	for _, kind := range []struct {
		of   schema.GroupVersionKind
		fill func() (toolscache.InformerSynced, error)
	}{
		{v1.WithKind("ResourceSlice"), filler(ctx, k, &resourcev1.ResourceSlice{}, d.Slices)},
		{v1.WithKind("DeviceClass"), filler(ctx, k, &resourcev1.DeviceClass{}, d.Classes)},
		{v1.WithKind("ResourceClaim"), filler(ctx, k, &resourcev1.ResourceClaim{}, d.Claims)},
		{v1beta2.WithKind("DeviceTaintRule"), filler(ctx, k, &resourcev1beta2.DeviceTaintRule{}, d.Taints)},
	} {
		_, err := served.RESTMapping(kind.of.GroupKind(), kind.of.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kinds of the API server: %w", err)
		}
		s, err := kind.fill()
		if err != nil {
			return nil, err
		}
		synced = append(synced, s)
	}
	return synced, nil
}

// filler returns a function that calls fillByWatch.
func filler[T client.Object](
	ctx context.Context, k cache.Cache, kind T, store *Store[T],
) func() (toolscache.InformerSynced, error) {
	return func() (toolscache.InformerSynced, error) { return fillByWatch(ctx, k, kind, store) }
}
