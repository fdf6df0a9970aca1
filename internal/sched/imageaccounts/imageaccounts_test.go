package imageaccounts

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/accounts"
)

// pod returns a job's pod whose init container has ended with the message.
func pod(reference, id, message string) *corev1.Pod {
	p := running(reference, "")
	p.Spec.InitContainers = []corev1.Container{{Name: "berth-prepare", Image: reference}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "berth-prepare", ImageID: id,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}
	return p
}

// running returns a job's pod without an init container.
func running(reference, id string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wire.LabelJobID: "7"}}}
	p.Spec.Containers = []corev1.Container{{Name: "job", Image: reference}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "job", ImageID: id}}
	return p
}

func TestImages(t *testing.T) {
	old := accounts.Files{Passwd: "root:x:0:0::/:/bin/sh\n", Group: "root:x:0:\n"}
	now := accounts.Files{Passwd: "root:x:0:0::/:/bin/bash\n", Group: "root:x:0:\n"}
	m := New()
	expect := func(what string, want accounts.Files, known bool) {
		t.Helper()
		if got, ok := m.Of("site/base:1"); got != want || ok != known {
			t.Errorf("%s: %+v, %v", what, got, ok)
		}
	}
	// What does not come from the image's own file, or is not a report, is not used.
	other := pod("site/base:1", "sha256:a", old.Message())
	other.Spec.InitContainers[0].Image = "berth/agent:1"
	foreign := pod("site/base:1", "sha256:a", old.Message())
	foreign.Labels = nil
	failed := pod("site/base:1", "sha256:a", old.Message())
	failed.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
	byJob := running("site/base:1", "sha256:a")
	byJob.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{Message: old.Message()}
	for what, p := range map[string]*corev1.Pod{
		"the agent's image": other, "not a job's pod": foreign, "failed": failed, "the job's own message": byJob,
		"no message": pod("site/base:1", "sha256:a", ""), "no pod": nil,
	} {
		m.Apply(nil, p)
		expect(what, accounts.Files{}, false)
	}
	m.Apply(nil, pod("site/base:1", "sha256:a", old.Message()))
	expect("reported", old, true)
	m.Apply(nil, running("site/base:1", "")) // its image is not pulled yet
	m.Apply(nil, running("site/base:1", "sha256:a"))
	m.Apply(nil, running("site/other:1", "sha256:b"))
	expect("pods of that image", old, true)
	m.Apply(nil, running("site/base:1", "sha256:b"))
	expect("another image of the same name", accounts.Files{}, false)
	m.Apply(nil, pod("site/base:1", "sha256:b", now.Message()))
	expect("its report", now, true)
}

func TestImagesAreLimited(t *testing.T) {
	m := New()
	for i := range 3 * maxImages {
		m.Apply(nil, pod(fmt.Sprint("site/", i), "sha256:a", accounts.Files{Passwd: "x"}.Message()))
	}
	if len(m.known) != maxImages {
		t.Errorf("%d images are known", len(m.known))
	}
	if _, ok := m.Of(fmt.Sprint("site/", 3*maxImages-1)); !ok {
		t.Error("the last image is not known")
	}
}
