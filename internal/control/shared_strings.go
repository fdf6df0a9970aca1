package control

import (
	"slices"
	"sync"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Bounds of sharedStrings, in strings and in bytes of one.
const (
	maxSharedStrings = 4096
	maxSharedLength  = 256
)

// sharedStrings has one copy of each string that many jobs have, such as the names of
// their user and their directory. An object that is decoded has copies of its own. Safe
// for concurrent use; the zero value is ready for use.
type sharedStrings struct {
	mu    sync.Mutex
	known map[string]string
}

// share replaces each of the strings by the copy that equal ones share.
func (s *sharedStrings) share(texts ...*string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if *text == "" || len(*text) > maxSharedLength {
			continue
		}
		if known, ok := s.known[*text]; ok {
			*text = known
			continue
		}
		if s.known == nil || len(s.known) >= maxSharedStrings { // forgets those that are no longer used, too
			s.known = make(map[string]string)
		}
		s.known[*text] = *text
	}
}

// finalizers are those of almost every BatchJob.
var finalizers = []string{wire.Finalizer}

// compact reduces the memory of a job that has just been decoded.
func (s *sharedStrings) compact(b *v1alpha1.BatchJob) {
	if slices.Equal(b.Finalizers, finalizers) {
		b.Finalizers = finalizers
	}
	j, p := &b.Spec.Job, &b.Spec.Job.Placement
	s.share(&b.Kind, &b.APIVersion, &b.Namespace, &b.Spec.User, &b.Spec.Partition,
		&j.Name, &j.Account, &j.QOS, &j.Reservation, &j.WCKey, &j.Hold, &j.Comment,
		&j.Batch.WorkDir, &j.Batch.SubmitHost, &j.Batch.SubmitAddress, &j.Batch.SubmitLine, &j.Batch.Command,
		&j.Batch.Output, &j.Batch.Error, &j.Batch.Input, &j.Batch.Export, &j.Batch.Client,
		&p.Constraint, &p.Exclusive, &p.Distribution, &p.Hint,
		&b.Status.State, &b.Status.Final, &b.Status.Reason, &b.Status.Partition)
	for i := range j.Partitions {
		s.share(&j.Partitions[i])
	}
}
