package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode"
)

const namespace = "default"

// script returns a pod that runs a shell script on node n1.
func script(text string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "t-", Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](20),
			Containers: []corev1.Container{{Name: "c", Image: processnode.HostImage, Command: []string{"/bin/sh", "-c", text}}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// create creates a pod, which is deleted at the end of the test.
func create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	ctx := context.Background()
	pod, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)})
		if err == nil {
			gone(t, pod)
		} else if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return pod
}

// await watches a pod until ok returns true.
func await(t *testing.T, pod *corev1.Pod, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout)
	defer cancel()
	now, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ok(now) {
		return now
	}
	w, err := client.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: now.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, is := e.Object.(*corev1.Pod); is {
			if now = p; ok(now) {
				return now
			}
		}
	}
	t.Fatalf("pod %s did not reach the state: %+v", pod.Name, now.Status)
	return nil
}

func gone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually.Holds(t, "pod "+pod.Name+" is gone", func() bool {
		_, err := client.CoreV1().Pods(pod.Namespace).Get(context.Background(), pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func logs(t *testing.T, pod *corev1.Pod, o corev1.PodLogOptions) string {
	t.Helper()
	data, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &o).DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// finish runs a pod to its end and returns its log.
func finish(t *testing.T, pod *corev1.Pod) (string, *corev1.Pod) {
	t.Helper()
	pod = await(t, create(t, pod), over)
	return logs(t, pod, corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name}), pod
}

func terminated(p *corev1.Pod) corev1.ContainerStateTerminated {
	if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Terminated == nil {
		return corev1.ContainerStateTerminated{ExitCode: -1, Message: fmt.Sprintf("%+v", p.Status)}
	}
	return *p.Status.ContainerStatuses[0].State.Terminated
}

// waitLog waits until the log contains text.
func waitLog(t *testing.T, pod *corev1.Pod, text string) {
	t.Helper()
	eventually.Holds(t, "log with "+text, func() bool {
		data, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		return err == nil && strings.Contains(string(data), text)
	})
}

// stream opens an exec or attach and returns stdout, stderr and the error.
func stream(t *testing.T, pod *corev1.Pod, verb string, o runtime.Object, in io.Reader, tty bool) (string, string, error) {
	t.Helper()
	url := client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource(verb).VersionedParams(o, scheme.ParameterCodec).URL()
	e, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout)
	defer cancel()
	var out, errOut bytes.Buffer
	options := remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: tty}
	if !tty {
		options.Stderr = &errOut
	}
	err = e.StreamWithContext(ctx, options)
	return out.String(), errOut.String(), err
}
