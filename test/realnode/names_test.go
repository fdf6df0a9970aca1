//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// showNames prints names as a job sees them: its user, users of the image, and its node with the
// number of its addresses.
const showNames = `whoami; id -gn; getent passwd root nobody | cut -d: -f1 | xargs
hostname; hostname --ip-address | wc -w
[ "$(hostname --ip-address)" = "$(getent ahostsv4 $(hostname) | awk 'NR == 1 {print $1}')" ] && echo same
touch /berth/run/x && echo writable`

// showSubmitHost is a script that submits another one, which prints how many addresses it finds
// for the host that it was submitted on.
const showSubmitHost = `sbatch -w %s -o submit.out --wrap 'getent ahostsv4 $SLURM_SUBMIT_HOST | grep -c STREAM'
until [ -s submit.out ]; do sleep 0.2; done`

// testNames: jobs know the same names whether an init container wrote them, as for the first job
// of an image and for those of several nodes, or the kubelet.
func testNames(t *testing.T, ctx context.Context, s *Site) {
	for _, c := range []struct {
		args  string
		inits int
	}{{"-N1", 0}, {"-N2", 1}} {
		id := submit(t, ctx, s, c.args, "-w", nodeNames[0], "-o", "names.out", "--wrap", showNames+
			"\nuntil [ -e names.go ]; do sleep 0.2; done")
		want := user.Name + "\n" + user.Name + "\nroot nobody\n" + nodeNames[0] + "\n1\nsame\nwritable\n"
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
		for _, file := range []string{"names.go", "names.out"} {
			if err := os.Remove(filepath.Join(user.Home(), file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	id := submit(t, ctx, s, "-w", nodeNames[0], "-o", "/dev/null", "--wrap", fmt.Sprintf(showSubmitHost, nodeNames[1]))
	waitForState(t, ctx, s, id, "COMPLETED")
	waitForOutput(t, ctx, "submit.out", "1\n")
}
