package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/eventually"
)

func TestLogOptionsAndFollow(t *testing.T) {
	pod := create(t, script(`for i in 1 2 3 4; do echo line $i; done; read x; echo $x`, func(p *corev1.Pod) {
		p.Spec.Containers[0].Stdin = true
	}))
	waitLog(t, pod, "line 4")
	if l := logs(t, pod, corev1.PodLogOptions{TailLines: ptr.To[int64](2)}); l != "line 3\nline 4\n" {
		t.Errorf("tail: %q", l)
	}
	if l := logs(t, pod, corev1.PodLogOptions{LimitBytes: ptr.To[int64](4)}); l != "line" {
		t.Errorf("limit: %q", l)
	}
	if l := logs(t, pod, corev1.PodLogOptions{Timestamps: true, TailLines: ptr.To[int64](1)}); !strings.HasSuffix(l, "Z line 4\n") {
		t.Errorf("timestamps: %q", l)
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout)
	defer cancel()
	follow, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true, TailLines: ptr.To[int64](0)}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()
	out, _, err := stream(t, pod, "attach", &corev1.PodAttachOptions{Stdin: true, Stdout: true, Stderr: true}, strings.NewReader("typed\n"), false)
	if err != nil {
		t.Error(err)
	}
	if out != "typed\n" {
		t.Errorf("attached: %q", out)
	}
	if rest, err := io.ReadAll(follow); err != nil || string(rest) != "typed\n" {
		t.Errorf("followed: %q, %v", rest, err)
	}
}

func TestExec(t *testing.T) {
	pod := await(t, create(t, script(`exec sleep 1000`, func(p *corev1.Pod) { p.Spec.Hostname = "box" })), running)
	run := func(in io.Reader, tty bool, argv ...string) (string, string, int) {
		t.Helper()
		out, errOut, err := stream(t, pod, "exec", &corev1.PodExecOptions{Command: argv, Stdin: in != nil, Stdout: true, Stderr: !tty, TTY: tty}, in, tty)
		var exit utilexec.ExitError
		if errors.As(err, &exit) {
			return out, errOut, exit.ExitStatus()
		}
		if err != nil {
			t.Fatal(err)
		}
		return out, errOut, 0
	}
	if out, errOut, code := run(nil, false, "sh", "-c", "hostname; cat /proc/1/comm; echo bad >&2; exit 6"); out != "box\nsleep\n" || errOut != "bad\n" || code != 6 {
		t.Errorf("%q %q %d", out, errOut, code)
	}
	big := strings.Repeat("0123456789abcdef\n", 50_000)
	if out, _, code := run(strings.NewReader(big), false, "cat"); out != big || code != 0 {
		t.Errorf("cat returned %d of %d bytes, code %d", len(out), len(big), code)
	}
	if out, _, code := run(strings.NewReader("exit 3\n"), true, "sh", "-c", "tty >/dev/null && echo terminal; read x; $x"); !strings.Contains(out, "terminal\r\n") || code != 3 {
		t.Errorf("%q %d", out, code)
	}
	if _, _, code := run(nil, false, "sh", "-c", "kill -9 $$"); code != 137 {
		t.Errorf("killed: %d", code)
	}
	if out, _, code := run(nil, false, "id", "-u"); out != fmt.Sprintln(os.Getuid()) || code != 0 {
		t.Errorf("id: %q %d", out, code)
	}
}

func TestPortForward(t *testing.T) {
	pod := await(t, create(t, script(`exec python3 -c '
import socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())
socketserver.TCPServer.allow_reuse_address = True
s = socketserver.TCPServer(("127.0.0.1", 18765), H)
print("up", flush=True)
s.serve_forever()'`)), running)
	waitLog(t, pod, "up")
	url := client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	stop, up := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), []string{"0:18765"}, stop, up, io.Discard, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.ForwardPorts() }()
	select {
	case <-up:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := echo(t, ports[0].Local); got != "HELLO\n" {
			t.Errorf("got %q", got)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// echo sends a line to a local port and returns the response.
func echo(t *testing.T, port uint16) string {
	t.Helper()
	conn, err := dial(port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestUsersOfTheClusterAreRefused(t *testing.T) {
	node, err := client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("%s:%d", node.Status.Addresses[0].Address, node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if code := getAs(t, addr, "mallory", "berth:users"); code != http.StatusForbidden {
		t.Errorf("a user's certificate: %d", code)
	}
	if code := getAs(t, addr, "kube-apiserver-kubelet-client", ""); code != http.StatusOK {
		t.Errorf("the API server's certificate: %d", code)
	}
}
