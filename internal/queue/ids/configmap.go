package ids

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigMap is a Store in a ConfigMap; its resource version is the version.
type ConfigMap struct {
	Client    client.Client // must read from the API server, not from a cache
	Namespace string
	Name      string
}

const dataKey = "next"

// Load reads the number; a ConfigMap that does not exist holds 0.
func (c *ConfigMap) Load(ctx context.Context) (int64, string, error) {
	var m corev1.ConfigMap
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, &m)
	if apierrors.IsNotFound(err) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("ConfigMap %s/%s: %w", c.Namespace, c.Name, err)
	}
	text, ok := m.Data[dataKey]
	if !ok {
		return 0, m.ResourceVersion, nil
	}
	next, err := strconv.ParseInt(text, 10, 64)
	if err != nil || next < 0 {
		return 0, "", fmt.Errorf("ConfigMap %s/%s: %q is not a job id; correct its key %q or delete it", c.Namespace,
			c.Name, text, dataKey)
	}
	return next, m.ResourceVersion, nil
}

// Swap writes the number if the ConfigMap still has that version.
func (c *ConfigMap) Swap(ctx context.Context, next int64, version string) error {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, ResourceVersion: version},
		Data:       map[string]string{dataKey: strconv.FormatInt(next, 10)},
	}
	var err error
	if version == "" {
		err = c.Client.Create(ctx, m)
	} else {
		err = c.Client.Update(ctx, m)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && version != "" {
		return ErrConflict
	}
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}
