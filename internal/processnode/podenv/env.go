// Package podenv determines the environment of containers: it evaluates references to
// ConfigMaps, Secrets, fields of the pod and resources, and expands $(VAR).
package podenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Facts are the values of fields of a pod on the node that runs it.
type Facts struct {
	Pod      *corev1.Pod
	PodIP    string
	HostIP   string
	Objects  ObjectReader
	Capacity corev1.ResourceList // of the node
}

// ObjectReader reads ConfigMaps and Secrets of a namespace.
type ObjectReader interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Environment returns a container's environment as ordered KEY=value entries, with
// references of the form $(VAR) expanded. The variables of base come first and may be
// overridden.
func (f *Facts) Environment(
	ctx context.Context, c *corev1.Container, base []corev1.EnvVar,
) ([]string, map[string]string, error) {
	values := map[string]string{}
	var order []string
	set := func(k, v string) {
		if _, ok := values[k]; !ok {
			order = append(order, k)
		}
		values[k] = v
	}
	for _, e := range base {
		set(e.Name, e.Value)
	}
	for _, from := range c.EnvFrom {
		data, err := f.envFrom(ctx, &from)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range slices.Sorted(maps.Keys(data)) {
			set(from.Prefix+k, data[k])
		}
	}
	for _, e := range c.Env {
		v := Expand(e.Value, values)
		if e.ValueFrom != nil {
			var ok bool
			var err error
			if v, ok, err = f.envValue(ctx, c, e.ValueFrom); err != nil {
				return nil, nil, fmt.Errorf("variable %s: %w", e.Name, err)
			} else if !ok {
				continue
			}
		}
		set(e.Name, v)
	}
	env := make([]string, len(order))
	for i, k := range order {
		env[i] = k + "=" + values[k]
	}
	return env, values, nil
}

func (f *Facts) envFrom(ctx context.Context, from *corev1.EnvFromSource) (map[string]string, error) {
	if r := from.ConfigMapRef; r != nil {
		m, err := f.Objects.ConfigMap(ctx, f.Pod.Namespace, r.Name)
		if err != nil {
			return nil, Optionally(r.Optional, err)
		}
		return m.Data, nil
	}
	if r := from.SecretRef; r != nil {
		s, err := f.Objects.Secret(ctx, f.Pod.Namespace, r.Name)
		if err != nil {
			return nil, Optionally(r.Optional, err)
		}
		data := map[string]string{}
		for k, v := range s.Data {
			data[k] = string(v)
		}
		return data, nil
	}
	return nil, nil
}

// Optionally returns nil for a missing object that is optional.
func Optionally(optional *bool, err error) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// envValue returns the value of a source, or false if it is optional and missing.
func (f *Facts) envValue(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		v, err := f.Field(from.FieldRef.FieldPath)
		return v, true, err
	case from.ResourceFieldRef != nil:
		v, err := f.Resource(from.ResourceFieldRef, c)
		return v, true, err
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		m, err := f.Objects.ConfigMap(ctx, f.Pod.Namespace, r.Name)
		if err != nil {
			return "", false, Optionally(r.Optional, err)
		}
		v, ok := m.Data[r.Key]
		return v, ok, missingKey(ok, r.Optional, "ConfigMap", r.Name, r.Key)
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		s, err := f.Objects.Secret(ctx, f.Pod.Namespace, r.Name)
		if err != nil {
			return "", false, Optionally(r.Optional, err)
		}
		v, ok := s.Data[r.Key]
		return string(v), ok, missingKey(ok, r.Optional, "Secret", r.Name, r.Key)
	}
	return "", false, errors.New("process nodes do not support this kind of source")
}

func missingKey(found bool, optional *bool, kind, name, key string) error {
	if found || optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("%s %s has no key %s", kind, name, key)
}

// Field returns the text of a fieldRef path of the downward API.
func (f *Facts) Field(path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.annotations":
			return f.Pod.Annotations[key], nil
		case "metadata.labels":
			return f.Pod.Labels[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return f.Pod.Name, nil
	case "metadata.namespace":
		return f.Pod.Namespace, nil
	case "metadata.uid":
		return string(f.Pod.UID), nil
	case "metadata.annotations":
		return quoted(f.Pod.Annotations), nil
	case "metadata.labels":
		return quoted(f.Pod.Labels), nil
	case "spec.nodeName":
		return f.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return f.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return f.HostIP, nil
	case "status.podIP", "status.podIPs":
		return f.PodIP, nil
	}
	return "", fmt.Errorf("process nodes do not support the field %s", path)
}

// subscript splits a path such as metadata.labels['key'].
func subscript(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	key, ok = strings.CutSuffix(rest, "']")
	return name, key, ok
}

// quoted returns a map in the format of downward API files.
func quoted(m map[string]string) string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}

// Resource returns the value of a resourceFieldRef, or the node's capacity for a limit that
// is not set.
func (f *Facts) Resource(r *corev1.ResourceFieldSelector, c *corev1.Container) (string, error) {
	if r.ContainerName != "" && (c == nil || c.Name != r.ContainerName) {
		c = nil
		for i := range f.Pod.Spec.Containers {
			if f.Pod.Spec.Containers[i].Name == r.ContainerName {
				c = &f.Pod.Spec.Containers[i]
			}
		}
	}
	kind, name, ok := strings.Cut(r.Resource, ".")
	if c == nil || !ok {
		return "", fmt.Errorf("resource %s of container %q", r.Resource, r.ContainerName)
	}
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	q, found := list[corev1.ResourceName(name)]
	if !found && kind == "limits" {
		q = f.Capacity[corev1.ResourceName(name)]
	}
	divisor := r.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == "cpu" {
		return strconv.FormatInt(ceilDiv(q.MilliValue(), divisor.MilliValue()), 10), nil
	}
	return strconv.FormatInt(ceilDiv(q.Value(), divisor.Value()), 10), nil
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / max(1, b) }

// Expand replaces $(VAR) by its value and $$ by a dollar sign. References to unknown
// variables remain.
func Expand(s string, values map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			name, _, ok := strings.Cut(s[i+2:], ")")
			if !ok {
				b.WriteByte('$')
				continue
			}
			if v, known := values[name]; known {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += len(name) + 2
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}
