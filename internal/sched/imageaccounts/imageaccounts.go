// Package imageaccounts remembers passwd(5) and group(5) of the images that jobs run in, as the
// init containers of earlier pods have reported them. With them, later pods need no init container.
package imageaccounts

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/accounts"
	"github.com/berth-hpc/berth/translate/kube"
)

// maxImages limits the memory: a job may name its image.
const maxImages = 200

// Images has the accounts of images. It is safe for concurrent use.
type Images struct {
	mu    sync.Mutex
	known map[string]image // by reference
}

// image is what is known about an image.
type image struct {
	id    string // of the contents; a tag may name others later
	files accounts.Files
}

// New returns Images without any.
func New() *Images { return &Images{known: map[string]image{}} }

// Of returns the accounts of an image, if they are known.
func (m *Images) Of(reference string) (accounts.Files, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.known[reference]
	return i.files, ok
}

// Apply takes over what a pod has reported. A pod whose image has the same reference and another
// id shows that the image has been replaced: its accounts are not known then.
func (m *Images) Apply(_, now *corev1.Pod) {
	if now == nil || now.Labels[wire.LabelJobID] == "" {
		return
	}
	reference, id, files, reported := kube.ImageAccounts(now)
	if id == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.known[reference]
	switch {
	case known && old.id == id:
	case reported:
		m.makeRoom()
		m.known[reference] = image{id, files}
	case known:
		delete(m.known, reference)
	}
}

// makeRoom forgets an arbitrary image if there are too many.
func (m *Images) makeRoom() {
	if len(m.known) < maxImages {
		return
	}
	for reference := range m.known {
		delete(m.known, reference)
		return
	}
}
