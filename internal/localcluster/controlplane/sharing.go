package controlplane

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// The API server keeps every custom resource, and the events of the last minutes, as maps
// of maps, each of which takes at least 336 bytes. The maps of a BatchJob take several times
// its text. Most jobs of a queue have been submitted by few programs, so that large parts of
// them are equal, and can be the same map. Objects of the API server's cache are never
// changed; of an object that is about to be changed, only the metadata and the outermost
// maps are (never shared), or it is copied first.

// sharingOptions are the storage options of custom resources, with which equal parts of
// BatchJobs are kept once.
type sharingOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of a resource.
func (g sharingOptions) GetRESTOptions(of schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := g.RESTOptionsGetter.GetRESTOptions(of, example)
	if err != nil || of != v1alpha1.GroupVersion.WithResource("batchjobs").GroupResource() {
		return o, err
	}
	decorate := o.Decorator
	o.Decorator = func(
		c *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		object, list func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		shared := *c
		shared.Codec = &sharingCodec{Codec: c.Codec}
		return decorate(&shared, prefix, key, object, list, attributes, triggers, indexers)
	}
	return o, nil
}

// sharingCodec is a codec whose decoded BatchJobs share the maps and strings that are equal.
// Safe for concurrent use.
type sharingCodec struct {
	runtime.Codec

	mu      sync.Mutex
	maps    recent[[sha256.Size]byte, map[string]any]
	strings recent[string, any]
}

// Bounds of what is kept for sharing.
const (
	maxShared      = 512  // maps or strings of each generation
	maxSharedBytes = 2048 // of the text of a map
	maxObjectBytes = 64 << 10
)

// Decode decodes an object.
func (c *sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (
	runtime.Object, *schema.GroupVersionKind, error) {
	o, kind, err := c.Codec.Decode(data, defaults, into)
	if u, ok := o.(*unstructured.Unstructured); ok && err == nil && len(data) <= maxObjectBytes {
		c.share(u.Object)
	}
	return o, kind, err
}

// share replaces parts of a BatchJob by equal ones of earlier jobs.
func (c *sharingCodec) share(o map[string]any) {
	spec, _ := o["spec"].(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	c.shareStrings(o, "apiVersion", "kind")
	c.shareStrings(metadata, "namespace")
	c.shareStrings(labels, wire.LabelUser)
	c.shareStrings(spec, "user", "partition")
	if j, ok := spec["job"].(map[string]any); ok {
		spec["job"] = c.sharedJob(j)
	}
}

// shareStrings replaces members of m that are strings.
func (c *sharingCodec) shareStrings(m map[string]any, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		text, ok := m[name].(string)
		if !ok {
			continue
		}
		known, ok := c.strings.get(text)
		if !ok {
			known = m[name]
			c.strings.put(text, known)
		}
		m[name] = known
	}
}

// sharedJob returns the job, or an equal one of an earlier object. If there is none, it
// replaces the job's own maps by equal ones, before other objects may have the job.
func (c *sharingCodec) sharedJob(j map[string]any) map[string]any {
	return c.shared(j, func() {
		for name, v := range j {
			if m, ok := v.(map[string]any); ok {
				j[name] = c.shared(m, func() {})
			}
		}
	})
}

// shared returns a map that is equal to m: m itself, after a call of prepare, if there was
// none before.
func (c *sharingCodec) shared(m map[string]any, prepare func()) map[string]any {
	text, err := json.Marshal(m) // with its members in order
	if err != nil || len(text) > maxSharedBytes {
		return m
	}
	key := sha256.Sum256(text)
	c.mu.Lock()
	known, ok := c.maps.get(key)
	c.mu.Unlock()
	if ok {
		return known
	}
	prepare()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maps.put(key, m)
	return m
}

// recent has the values that were used last: at least maxShared of them, and at most twice
// as many. The zero value is empty.
type recent[K comparable, V any] struct{ newer, older map[K]V }

func (r *recent[K, V]) get(key K) (V, bool) {
	v, ok := r.newer[key]
	if ok {
		return v, true
	}
	if v, ok = r.older[key]; ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[K, V]) put(key K, v V) {
	if len(r.newer) >= maxShared {
		r.older, r.newer = r.newer, nil
	}
	if r.newer == nil {
		r.newer = map[K]V{}
	}
	r.newer[key] = v
}
