package e2e

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode"
)

func TestExitCodesAndLog(t *testing.T) {
	log, pod := finish(t, script(`echo out; echo err >&2; echo -n goodbye > /dev/termination-log; exit 3`))
	if log != "out\nerr\n" && log != "err\nout\n" {
		t.Errorf("log %q", log)
	}
	end := terminated(pod)
	if pod.Status.Phase != corev1.PodFailed || end.ExitCode != 3 || end.Reason != "Error" || end.Message != "goodbye" || end.StartedAt.IsZero() || end.FinishedAt.IsZero() {
		t.Errorf("phase %s, end %+v", pod.Status.Phase, end)
	}
	_, pod = finish(t, script(`true`))
	if end := terminated(pod); pod.Status.Phase != corev1.PodSucceeded || end.Reason != "Completed" {
		t.Errorf("phase %s, end %+v", pod.Status.Phase, end)
	}
	_, pod = finish(t, script(``, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"no-such-command"} }))
	if end := terminated(pod); end.ExitCode != 128 || end.Reason != "StartError" || !strings.Contains(end.Message, "not found") {
		t.Errorf("end %+v", end)
	}
}

func TestHostNameUserAndAddresses(t *testing.T) {
	uid, gid := os.Getuid(), os.Getgid()
	if processnode.IsRoot() {
		uid, gid = 12345, 12346
	}
	log, pod := finish(t, script(`hostname; id -u; id -g; grep "$(hostname)" /etc/hosts | cut -f1; echo $IP; echo $NODE/$WHO/$L/$CPU; echo "$EXP"; pwd; test -r /var/run/secrets/kubernetes.io/serviceaccount/token && echo token; getent hosts $(hostname) | wc -l; echo $$$$`,
		func(p *corev1.Pod) {
			p.Labels = map[string]string{"a/b": "label"}
			p.Spec.HostnameOverride = ptr.To("node-x")
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(uid)), RunAsGroup: ptr.To(int64(gid))}
			c := &p.Spec.Containers[0]
			c.WorkingDir = "/usr"
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			field := func(name, path string) corev1.EnvVar {
				return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
			}
			c.Env = []corev1.EnvVar{
				field("IP", "status.podIP"), field("NODE", "spec.nodeName"), field("WHO", "metadata.namespace"), field("L", "metadata.labels['a/b']"),
				{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				{Name: "EXP", Value: "$(NODE) $$(NODE) $(NONE)"},
			}
		}))
	want := strings.Join([]string{"node-x", strconv.Itoa(uid), strconv.Itoa(gid), pod.Status.PodIP, pod.Status.PodIP,
		"n1/default/label/2", "n1 $(NODE) $(NONE)", "/usr", "token", "1", "1", ""}, "\n")
	if log != want {
		t.Errorf("log:\n%s\nwant:\n%s", log, want)
	}
}

func TestAnotherUserIsRefusedWithoutRoot(t *testing.T) {
	if processnode.IsRoot() {
		t.Skip("root may run pods of all users")
	}
	pod := await(t, create(t, script(`id -u`, func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1)}
	})), over)
	if !strings.Contains(pod.Status.Message, "without root") {
		t.Errorf("status %+v", pod.Status)
	}
	hasEvent(t, pod, "without root")
}

func hasEvent(t *testing.T, pod *corev1.Pod, text string) {
	t.Helper()
	eventually.Holds(t, "event "+text, func() bool {
		list, err := client.CoreV1().Events(pod.Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if strings.Contains(e.Message, text) {
				return true
			}
		}
		return false
	})
}

func TestRefusals(t *testing.T) {
	pod := await(t, create(t, script(`true`, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "busybox" })), over)
	if pod.Status.Reason != "ErrImagePull" || !strings.Contains(pod.Status.Message, processnode.HostImage) {
		t.Errorf("status %+v", pod.Status)
	}
	hasEvent(t, pod, "busybox")
	pod = await(t, create(t, script(`true`, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
	})), over)
	if pod.Status.Reason != "OutOfcpu" {
		t.Errorf("status %+v", pod.Status)
	}
}

func TestTermGraceAndKill(t *testing.T) {
	ctx := context.Background()
	// A script that handles SIGTERM ends at once with its own exit code.
	pod := create(t, script(`trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.05; done`, keep))
	waitLog(t, pod, "up")
	remove(t, pod, 20)
	pod = await(t, pod, over)
	if end := terminated(pod); end.ExitCode != 5 {
		t.Errorf("end %+v", end)
	}
	release(t, pod)

	// A script that ignores it is killed after the grace period, with all of its processes.
	pod = create(t, script(`trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done`, keep))
	waitLog(t, pod, "up")
	start := time.Now()
	remove(t, pod, 1)
	pod = await(t, pod, over)
	if end := terminated(pod); end.ExitCode != 137 || time.Since(start) < time.Second {
		t.Errorf("after %s: end %+v", time.Since(start), end)
	}
	release(t, pod)

	// A later deletion with a shorter grace period takes effect.
	pod = create(t, script(`trap '' TERM; echo up; while :; do sleep 0.05; done`))
	waitLog(t, pod, "up")
	remove(t, pod, 1000)
	remove(t, pod, 1)
	gone(t, pod)

	// A deletion without a grace period ends the pod's processes.
	pod = create(t, script(`sleep 1000`))
	await(t, pod, running)
	if err := client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the pod's directory is removed", func() bool { return !hasDirectory(pod) })
}

// hasDirectory reports whether the pod's directory exists.
func hasDirectory(pod *corev1.Pod) bool {
	_, err := os.Stat(nodes.dir + "/pods/" + string(pod.UID))
	return err == nil
}

// keep adds a finalizer, so that the test can read the last status.
func keep(p *corev1.Pod) { p.Finalizers = []string{"berth.hpc/e2e"} }

func release(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.CoreV1().Pods(pod.Namespace).Patch(context.Background(), pod.Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, pod)
}

func remove(t *testing.T, pod *corev1.Pod, grace int64) {
	t.Helper()
	if err := client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
}

func TestDeadline(t *testing.T) {
	pod := await(t, create(t, script(`sleep 1000`, func(p *corev1.Pod) {
		p.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	})), over)
	if pod.Status.Reason != "DeadlineExceeded" || pod.Status.Phase != corev1.PodFailed {
		t.Errorf("status %+v", pod.Status)
	}
}

func TestInitContainersAndSeveralContainers(t *testing.T) {
	volume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		mount := []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		sh := func(name, text string) corev1.Container {
			return corev1.Container{Name: name, Image: processnode.HostImage, Command: []string{"/bin/sh", "-c", text}, VolumeMounts: mount}
		}
		p.Spec.InitContainers = []corev1.Container{sh("i1", "echo one > /v/f"), sh("i2", "echo two >> /v/f")}
		p.Spec.Containers = []corev1.Container{sh("c", "cat /v/f; echo x > /dev/shm/s; until test -e /v/done; do sleep 0.02; done"), sh("d", "until test -e /dev/shm/s; do sleep 0.02; done; touch /v/done; exit 4")}
	}
	log, pod := finish(t, script("", volume))
	if log != "one\ntwo\n" || pod.Status.Phase != corev1.PodFailed {
		t.Errorf("log %q, phase %s", log, pod.Status.Phase)
	}
	if s := pod.Status.ContainerStatuses[1].State.Terminated; s == nil || s.ExitCode != 4 {
		t.Errorf("second container %+v", s)
	}
	pod = await(t, create(t, script("true", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: processnode.HostImage, Command: []string{"/bin/sh", "-c", "exit 9"}}}
	})), over)
	if pod.Status.Phase != corev1.PodFailed || pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode != 9 {
		t.Errorf("status %+v", pod.Status)
	}
}

func TestRestartAndPreviousLog(t *testing.T) {
	pod := create(t, script(`n=$(cat /v/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > /v/n; echo run $n; test $n -ge 2`, func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	}))
	pod = await(t, pod, over)
	s := pod.Status.ContainerStatuses[0]
	if pod.Status.Phase != corev1.PodSucceeded || s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("status %+v", pod.Status)
	}
	if l := logs(t, pod, corev1.PodLogOptions{}); l != "run 2\n" {
		t.Errorf("log %q", l)
	}
	if l := logs(t, pod, corev1.PodLogOptions{Previous: true}); l != "run 1\n" {
		t.Errorf("previous log %q", l)
	}
}

func TestReadinessAndLiveness(t *testing.T) {
	pod := create(t, script(`rm -f /v/dead; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done`, func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		c := &p.Spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		probe := func(cmd string) *corev1.Probe {
			return &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", cmd}}}}
		}
		c.ReadinessProbe, c.LivenessProbe = probe("test -e /v/ready"), probe("! test -e /v/dead")
	}))
	pod = await(t, pod, running)
	if ready(pod) {
		t.Error("ready before the probe succeeded")
	}
	command(t, pod, "touch", "/v/ready")
	await(t, pod, ready)
	command(t, pod, "rm", "/v/ready")
	await(t, pod, func(p *corev1.Pod) bool { return !ready(p) })
	command(t, pod, "touch", "/v/dead")
	await(t, pod, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount >= 1 })
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// command runs a command in the pod by exec, and repeats it while the container restarts.
func command(t *testing.T, pod *corev1.Pod, argv ...string) {
	t.Helper()
	eventually.Holds(t, strings.Join(argv, " "), func() bool {
		_, _, err := stream(t, pod, "exec", &corev1.PodExecOptions{Command: argv, Stdout: true, Stderr: true}, nil, false)
		return err == nil
	})
}

func TestMemoryLimit(t *testing.T) {
	if !processnode.IsRoot() {
		t.Skip("needs root: control groups")
	}
	_, pod := finish(t, script(`exec head -c 200M /dev/zero | tail`, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	}))
	if end := terminated(pod); end.Reason != "OOMKilled" {
		t.Errorf("end %+v", end)
	}
}
