package podenv

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// objectAge is the maximum age of a cached ConfigMap. The cache exists because every pod of a
// namespace reads the ConfigMap with the cluster's CA.
const objectAge = 15 * time.Second

// Objects reads ConfigMaps and Secrets. It is safe for concurrent use.
type Objects struct {
	client kubernetes.Interface

	mu   sync.Mutex
	maps map[string]cachedMap
}

type cachedMap struct {
	value *corev1.ConfigMap
	until time.Time
}

// NewObjects returns a reader that uses the client.
func NewObjects(client kubernetes.Interface) *Objects {
	return &Objects{client: client, maps: map[string]cachedMap{}}
}

// ConfigMap returns a ConfigMap, which must not be modified.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	key, now := namespace+"/"+name, time.Now()
	o.mu.Lock()
	c, ok := o.maps[key]
	o.mu.Unlock()
	if ok && now.Before(c.until) {
		return c.value, nil
	}
	m, err := o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, c := range o.maps {
		if now.After(c.until) {
			delete(o.maps, k)
		}
	}
	o.maps[key] = cachedMap{value: m, until: now.Add(objectAge)}
	return m, nil
}

// Secret returns a Secret, which is not cached: secrets are not kept in memory.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}
