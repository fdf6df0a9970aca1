package admission_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

// large returns a change that gives a submission an environment of n bytes when stored:
// a skippable frame of zstd.
func large(n int, more ...func(*v1alpha1.BatchJob)) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Spec.Script = nil
		size := n - 8
		b.Spec.Environment = append(
			[]byte{0x50, 0x2a, 0x4d, 0x18, byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)},
			bytes.Repeat([]byte{'x'}, size)...)
		for _, f := range more {
			f(b)
		}
	}
}

const beyond = "beyond the limit of "

// TestBytesOfAUser: the bytes that one user stores are limited. An array and a
// heterogeneous job count once, and what is stored counts after a restart.
func TestBytesOfAUser(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxBytesPerUser: 100 << 10}))
	first := h.submit(t, anna, named(1, large(40<<10, array("0-99"))))
	components := func(b *v1alpha1.BatchJob) {
		b.Spec.Components = []job.Job{b.Spec.Job, b.Spec.Job}
	}
	second := h.submit(t, anna, named(2, large(40<<10, components)))
	_, refused := h.create(t, anna, named(3, large(40<<10)), false)
	if text := plain(t, refused); !strings.Contains(text, beyond+"100 KiB") ||
		!strings.Contains(text, "maxBytesPerUser") {
		t.Errorf("%s", text)
	}
	h.submit(t, ben, named(4, large(40<<10, func(b *v1alpha1.BatchJob) { b.Namespace = "user-ben" })))

	// Stored without payload, as after a restart.
	for _, b := range []*v1alpha1.BatchJob{first, second} {
		fake.Feed(h.Cluster, b)
		b.ResourceVersion += "0"
		h.ApplyJob(b)
	}
	if _, refused = h.create(t, anna, named(5, large(40<<10)), false); !strings.Contains(plain(t, refused), beyond) {
		t.Errorf("what is stored does not count: %v", refused)
	}
	h.submit(t, anna, named(6, large(10<<10)))
	h.Jobs.Remove(first, now)
	h.submit(t, anna, named(7, large(40<<10)))
}

func TestBytesAnAdministratorAllows(t *testing.T) {
	h := newHarness(t)
	user, limit := fake.User("anna", 1001), int64(1<<10)
	user.Spec.MaxBytes = &limit
	fake.Feed(h.Cluster, user)
	_, refused := h.create(t, anna, named(1, large(2<<10)), false)
	if !strings.Contains(plain(t, refused), beyond+"1 KiB") {
		t.Errorf("%v", refused)
	}
	none := *user
	limit = -1
	none.ResourceVersion = "9"
	fake.Feed(h.Cluster, &none)
	h.submit(t, anna, named(1, large(admission.DefaultMaxBytes/200)))
}

// TestRateComesFirst: a submission beyond the rate is refused before it is parsed.
func TestRateComesFirst(t *testing.T) {
	h := newHarness(t, func(c *admission.Config) { c.Rate, c.Burst = 1, 1 })
	h.submit(t, anna, submission(nil))
	wrong := submission(func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "not an array"} })
	if _, refused := h.create(t, anna, wrong, false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("%v", refused)
	}
}
