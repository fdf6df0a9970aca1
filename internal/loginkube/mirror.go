package loginkube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keyObject is a ConfigMap or Secret.
type keyObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Kind              string            `json:"kind"`
	Data              map[string]string `json:"data"`
	secret            bool
}

// lines returns a user's lines of authorized_keys.
func (o *keyObject) lines(user string) []string {
	text, ok := o.Data[user]
	if !ok {
		return nil
	}
	if o.secret {
		var raw []byte
		if json.Unmarshal([]byte(`"`+text+`"`), &raw) != nil {
			return nil
		}
		text = string(raw)
	}
	return strings.Split(strings.TrimSpace(text), "\n")
}

// mirror holds the objects of a collection, by name.
type mirror[T any] struct {
	c        *Cluster
	path     string
	selector string

	mu      sync.RWMutex
	objects map[string]T
	heard   time.Time     // the last answer of the API server; zero: none yet
	first   chan struct{} // closed at the first answer
}

// follow starts a mirror.
func follow[T any](ctx context.Context, c *Cluster, path, selector string) *mirror[T] {
	m := &mirror[T]{c: c, path: path, selector: selector, first: make(chan struct{})}
	go m.run(ctx)
	return m
}

// firstAnswer bounds how long a login right after the start of the server waits for the
// API server's first answer.
const firstAnswer = 5 * time.Second

// fresh returns an error if the mirror is not up to date. It waits for the first answer
// of the API server, for at most firstAnswer.
func (m *mirror[T]) fresh() error {
	select {
	case <-m.first:
	case <-time.After(firstAnswer):
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.heard.IsZero() {
		return errors.New("the API server has not answered yet")
	}
	if age := time.Since(m.heard); age > stale {
		return fmt.Errorf("the API server has not answered for %v", age.Round(time.Second))
	}
	return nil
}

func (m *mirror[T]) get(name string) (T, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[name]
	return o, ok
}

// find returns an object for which f returns true; nil: there is none.
func (m *mirror[T]) find(f func(*T) bool) *T {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, o := range m.objects {
		if f(&o) {
			return &o
		}
	}
	return nil
}

// each calls f in the order of names.
func (m *mirror[T]) each(f func(*T)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		o := m.objects[name]
		f(&o)
	}
}

const (
	retry       = time.Second     // pause between attempts
	watchLength = 4 * time.Minute // a watch ends after it, so that a dead connection is noticed
)

func (m *mirror[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		version, err := m.list(ctx)
		for err == nil && ctx.Err() == nil {
			version, err = m.watch(ctx, version)
		}
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errRelist) {
			m.c.opts.Log(fmt.Sprintf("following %s: %v", m.path, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// errRelist reports that the watch cannot resume and the objects must be listed again.
var errRelist = errors.New("the watch must start again")

func (m *mirror[T]) list(ctx context.Context) (string, error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	q := url.Values{}
	if m.selector != "" {
		q.Set("labelSelector", m.selector)
	}
	if err := m.c.client.Get(ctx, m.path, q, &list); err != nil {
		return "", err
	}
	objects := map[string]T{}
	for _, raw := range list.Items {
		name, o, err := m.decode(raw)
		if err != nil { // only this object is missing
			m.c.opts.Log(fmt.Sprintf("%s/%s cannot be read: %v", m.path, name, err))
			continue
		}
		objects[name] = o
	}
	m.mu.Lock()
	if m.heard.IsZero() {
		close(m.first)
	}
	m.objects, m.heard = objects, time.Now()
	m.mu.Unlock()
	return list.Metadata.ResourceVersion, nil
}

func (m *mirror[T]) decode(raw []byte) (string, T, error) {
	var meta struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	var o T
	if err := errors.Join(json.Unmarshal(raw, &meta), json.Unmarshal(raw, &o)); err != nil {
		return meta.Metadata.Name, o, err
	}
	if k, ok := any(&o).(*keyObject); ok {
		k.secret = strings.HasSuffix(m.path, "/secrets")
	}
	return meta.Metadata.Name, o, nil
}

type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch watches from a resource version and returns the last one.
func (m *mirror[T]) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchLength+30*time.Second)
	defer cancel()
	q := url.Values{
		"watch": {"true"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {fmt.Sprint(int(watchLength.Seconds()))},
	}
	if m.selector != "" {
		q.Set("labelSelector", m.selector)
	}
	err := m.c.client.Stream(ctx, m.path, q, func(line []byte) error {
		var e watchEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		v, err := m.apply(e)
		if err == nil {
			version = v
		}
		return err
	})
	return version, err
}

func (m *mirror[T]) apply(e watchEvent) (string, error) {
	if e.Type == "ERROR" {
		return "", errRelist
	}
	var meta struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &meta); err != nil {
		return "", err
	}
	version := meta.Metadata.ResourceVersion
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = time.Now()
	switch e.Type {
	case "BOOKMARK":
		return version, nil
	case "DELETED":
		delete(m.objects, meta.Metadata.Name)
		return version, nil
	}
	name, o, err := m.decode(e.Object)
	if err != nil {
		m.c.opts.Log(fmt.Sprintf("%s/%s cannot be read: %v", m.path, meta.Metadata.Name, err))
		delete(m.objects, meta.Metadata.Name)
		return version, nil
	}
	m.objects[name] = o
	return version, nil
}
