package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// The suite "pods" lets kube-scheduler's default profile and Berth's bind the same pods
// in the same cluster, alternately. Its nodes are simulated.
var podsMarks = marks{"<!-- pods: written by make bench-kwok -->\n", "<!-- end of pods -->\n"}

const (
	podNodes  = 1000
	podRounds = 3
	podWait   = 5 * time.Minute
	// podSettle is how long after the last binding the processor time of later writes
	// is included.
	podSettle = 8 * time.Second
)

// load is pods that come at once.
type load struct {
	what         string
	pods, gangOf int // gangOf 0: each pod by itself
}

var loads = []load{
	{"1,000 pods, gangs of 10", 1000, 10},
	{"1,000 pods, gangs of 100", 1000, 100},
	{"1,000 pods, one gang", 1000, 1000},
	{"1,000 pods, each by itself", 1000, 0},
}

// named are the loads that have text in their names; "$" is the end of a name.
func named(all []load, text string) []load {
	return slices.DeleteFunc(slices.Clone(all), func(l load) bool { return !strings.Contains(l.what+"$", text) })
}

// bound is the result of one load.
type bound struct {
	rate    float64 // pods a second, from the first submission to the last binding
	cpu     float64 // ms of the cluster's processor time for each pod, until all is written
	made    float64 // ms until the last pod was created
	decided samples // from the job's coming into the queue to the decision where it runs, of each
}

type podBench struct {
	*fleet
	cluster *system
	pid     int
	round   int
}

func benchPods(ctx context.Context, o options) error {
	busy := firstField("/proc/loadavg")
	s, state, stop, err := startAlone(ctx, o, "--nodes=0")
	defer stop()
	if err != nil {
		return err
	}
	b := &podBench{cluster: s}
	if b.fleet, err = newFleet(filepath.Join(state, "kubeconfig"), podNodes); err != nil {
		return err
	}
	if b.pid, err = processOf(state); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := b.start(ctx); err != nil {
		return err
	}
	b.playAll(ctx)
	if err := b.allow(ctx); err != nil {
		return err
	}
	text, err := b.table(ctx, named(loads, o.only), o.repeat)
	if err != nil {
		return err
	}
	text += overFleet(busy)
	return podsMarks.publish(o.page, text)
}

// table measures every load with both, in turns.
func (b *podBench) table(ctx context.Context, loads []load, rounds int) (string, error) {
	var t strings.Builder
	t.WriteString(sidesHead)
	for _, l := range loads {
		of := sides[bound]{}
		for range min(podRounds, rounds) {
			for _, by := range []string{wire.SchedulerName, corev1.DefaultSchedulerName} {
				say("%s: %s", l.what, by)
				r, err := b.bind(ctx, l, by)
				if err != nil {
					return "", fmt.Errorf("%s by %s: %w", l.what, by, err)
				}
				of[by] = append(of[by], r)
			}
		}
		of.row(&t, l.what+": bound a second", "%.0f", "1.2", true, func(x bound) float64 { return x.rate })
		of.row(&t, l.what+": the cluster's processor time for each", "%.1f ms", "", false,
			func(x bound) float64 { return x.cpu })
		of.row(&t, l.what+": until all pods are made", "%.0f ms", "", false, func(x bound) float64 { return x.made })
		var decided samples
		for _, r := range of[wire.SchedulerName] {
			decided = append(decided, r.decided...)
		}
		goal := ""
		if l.gangOf == l.pods {
			goal = "50 ms"
		}
		fmt.Fprintf(&t, "| %s: from the queue to the decision, median | %s | – | | %s |\n", l.what,
			short(decided.median()), goal)
	}
	return t.String(), nil
}

// bind creates the pods of a load, waits until all of them are bound, and deletes them.
func (b *podBench) bind(ctx context.Context, l load, scheduler string) (bound, error) {
	b.round++
	if err := b.makeGroups(ctx, l); err != nil {
		return bound{}, err
	}
	cpu, began := processTime(b.pid), time.Now()
	if err := b.makePods(ctx, l, scheduler); err != nil {
		return bound{}, err
	}
	made := time.Since(began)
	if err := b.await(ctx, began, l.pods); err != nil {
		return bound{}, err
	}
	_, last := b.span()
	pause(ctx, podSettle)
	r := bound{rate: float64(l.pods) / last.Sub(began).Seconds(),
		cpu:  (processTime(b.pid) - cpu).Seconds() * 1000 / float64(l.pods),
		made: made.Seconds() * 1000}
	if scheduler == wire.SchedulerName {
		var err error
		if r.decided, err = b.decisions(ctx, began); err != nil {
			return bound{}, err
		}
	}
	return r, b.clear(ctx)
}

// makeLoad makes everything of a load.
func (b *podBench) makeLoad(ctx context.Context, l load, scheduler string) error {
	if err := b.makeGroups(ctx, l); err != nil {
		return err
	}
	return b.makePods(ctx, l, scheduler)
}

func (b *podBench) makeGroups(ctx context.Context, l load) error {
	if l.gangOf == 0 {
		return nil
	}
	for g := range l.pods / l.gangOf {
		if err := b.makeGroup(ctx, b.groupName(g), l.gangOf); err != nil {
			return err
		}
	}
	return nil
}

func (b *podBench) groupName(g int) string { return fmt.Sprintf("r%d-g%d", b.round, g) }

func (b *podBench) makePods(ctx context.Context, l load, scheduler string) error {
	names := make([]string, l.pods)
	for i := range names {
		names[i] = fmt.Sprintf("r%d-%04d", b.round, i)
	}
	return each(names, func(name string) error {
		group := ""
		if l.gangOf > 0 {
			i, err := strconv.Atoi(name[len(name)-4:])
			if err != nil {
				return err
			}
			group = b.groupName(i / l.gangOf)
		}
		return b.makePod(ctx, name, group, scheduler)
	})
}

// await waits until that number of pods were seen bound.
func (b *podBench) await(ctx context.Context, began time.Time, pods int) error {
	for n := b.count(); n < pods; n = b.count() {
		if time.Since(began) > podWait || ctx.Err() != nil {
			return fmt.Errorf("%d of %d pods were bound after %v; %s", n, pods, podWait, b.ready(ctx))
		}
		pause(ctx, 5*time.Millisecond)
	}
	return nil
}

// decisions returns for each job since began how long it waited for its placement,
// according to its history; it starts when all of its pods are bound.
func (b *podBench) decisions(ctx context.Context, began time.Time) (samples, error) {
	data, err := b.client.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.GroupVersion.String(), "namespaces",
		fleetNamespace, "batchjobs").
		SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	var list v1alpha1.BatchJobList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	var out samples
	for i := range list.Items {
		j := &list.Items[i]
		i := slices.IndexFunc(j.Status.History,
			func(c v1alpha1.StateChange) bool { return c.State == v1alpha1.StateConfiguring })
		if s := j.Spec.SubmitTime; s != nil && i >= 0 && s.After(began) {
			out = append(out, j.Status.History[i].At.Sub(s.Time))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no job of these pods was placed")
	}
	return out, nil
}

func (b *podBench) makePod(ctx context.Context, name, group, scheduler string) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fleetNamespace},
		Spec: corev1.PodSpec{SchedulerName: scheduler, AutomountServiceAccountToken: new(bool),
			TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "none",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"),
					"memory": resource.MustParse("1Gi")}}}}}}
	if group != "" {
		p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": group}
	}
	if _, err := b.client.CoreV1().Pods(fleetNamespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	return nil
}

func (b *podBench) makeGroup(ctx context.Context, name string, members int) error {
	text := fmt.Sprintf(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":%q},"spec":{"minMember":%d}}`, name, members)
	_, err := b.client.CoreV1().RESTClient().Post().AbsPath(
		"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/"+fleetNamespace+"/podgroups").
		SetHeader("Content-Type", "application/json").SetHeader("Accept",
		"application/json").Body([]byte(text)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("PodGroup: %w", err)
	}
	return nil
}

// allow lets pods of the namespace wait in the queue.
func (b *podBench) allow(ctx context.Context) error {
	patch := fmt.Sprintf(`{"spec":{"workloadNamespaces":[%q]}}`, fleetNamespace)
	path := "/apis/" + v1alpha1.GroupVersion.String() + "/clusters/"
	_, err := b.client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path+v1alpha1.ClusterName).
		SetHeader("Accept", "application/json").Body([]byte(patch)).DoRaw(ctx)
	if err != nil {
		text := fmt.Sprintf(`{"apiVersion":%q,"kind":"Cluster","metadata":{"name":%q},"spec":{"workloadNamespaces":[%q]}}`,
			v1alpha1.GroupVersion.String(), v1alpha1.ClusterName, fleetNamespace)
		_, err = b.client.CoreV1().RESTClient().Post().AbsPath(path).
			SetHeader("Content-Type", "application/json").SetHeader("Accept",
			"application/json").Body([]byte(text)).DoRaw(ctx)
	}
	if err != nil {
		return fmt.Errorf("workloadNamespaces: %w", err)
	}
	return nil
}

// processOf returns the process that runs the cluster.
func processOf(state string) (int, error) {
	data, err := os.ReadFile(filepath.Join(state, "process.json"))
	if err != nil {
		return 0, err
	}
	var p struct{ PID int }
	if err := json.Unmarshal(data, &p); err != nil {
		return 0, fmt.Errorf("process.json: %w: %s", err, data)
	}
	if p.PID == 0 {
		return 0, fmt.Errorf("process.json names no process: %s", data)
	}
	return p.PID, nil
}

// processTime is the processor time that a process has used, to the 10 ms.
func processTime(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	ticks := int64(0)
	for _, field := range f[11:13] { // utime, stime: proc(5)
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
