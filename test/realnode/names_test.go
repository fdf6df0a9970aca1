//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// showNames prints names as a job sees them: its user, users of the image, its node, and with the
// number of their addresses the node and the host of submission.
const showNames = `whoami; id -gn; getent passwd root nobody | cut -d: -f1 | xargs
hostname; hostname --ip-address | wc -w; getent ahostsv4 $SLURM_SUBMIT_HOST | grep -c STREAM
[ "$(hostname --ip-address)" = "$(getent ahostsv4 $(hostname) | awk 'NR == 1 {print $1}')" ] && echo same
touch /berth/run/x && echo writable`

// testNames: jobs know the same names whether an init container wrote them, as for the first job
// of an image and for those of several nodes, or the kubelet.
func testNames(t *testing.T, ctx context.Context, s *Site) {
	for _, c := range []struct {
		args  string
		inits int
	}{{"-N1", 0}, {"-N2", 1}} {
		id := submit(t, ctx, s, c.args, "-w", nodeNames[0], "-o", "names.out", "--wrap", showNames+
			"\nuntil [ -e names.go ]; do sleep 0.2; done")
		want := user.Name + "\n" + user.Name + "\nroot nobody\n" + nodeNames[0] + "\n1\n1\nsame\nwritable\n"
		waitForOutput(t, ctx, "names.out", want)
		pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "berth.hpc/job-id=" + id})
		if err != nil || len(pods.Items) == 0 {
			t.Fatalf("%d pods, %v", len(pods.Items), err)
		}
		for i := range pods.Items {
			var inits []string
			for _, c := range pods.Items[i].Spec.InitContainers {
				inits = append(inits, c.Name)
			}
			if len(inits) != c.inits {
				t.Errorf("%s: the pod has the init containers [%s], want %d", c.args, strings.Join(inits, " "), c.inits)
			}
		}
		writeHome(t, "names.go", "")
		waitForState(t, ctx, s, id, "COMPLETED")
		if _, err := s.As(ctx, user, user.Home(), "rm", "names.go", "names.out"); err != nil {
			t.Fatal(fmt.Errorf("cleaning up: %w", err))
		}
	}
}
