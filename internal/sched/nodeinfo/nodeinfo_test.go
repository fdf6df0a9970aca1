package nodeinfo

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// testNode returns a node that is ready.
func testNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func TestUnavailable(t *testing.T) {
	for want, change := range map[string]func(*corev1.Node){
		"":      func(*corev1.Node) {},
		Drain:   func(n *corev1.Node) { n.Spec.Unschedulable = true },
		Down:    func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		Unknown: func(n *corev1.Node) { n.Status.Conditions = nil },
	} {
		if got := Unavailable(testNode("n", change)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for state, want := range map[string]string{"drain": Drain, "down": Down} {
		n := testNode("n", func(n *corev1.Node) { n.Annotations[wire.AnnotationState] = state })
		if got := Unavailable(n); got != want {
			t.Errorf("with the annotation %q: got %q, want %q", state, got, want)
		}
	}
}

func TestReason(t *testing.T) {
	for annotation, want := range map[string]struct {
		text, user string
		at         int64
	}{
		"":                                  {},
		"disk":                              {text: "disk"},
		"disk [root@2026-01-02T03:04:05]":   {"disk", "root", 1767323045},
		"disk [replaced]":                   {text: "disk [replaced]"},
		"disk [root@yesterday]":             {text: "disk [root@yesterday]"},
		"a [b] c [eve@2026-01-02T03:04:05]": {"a [b] c", "eve", 1767323045},
	} {
		n := testNode("n", func(n *corev1.Node) { n.Annotations[wire.AnnotationReason] = annotation })
		if text, user, at := Reason(n); text != want.text || user != want.user || at != want.at {
			t.Errorf("%q: %q %q %d", annotation, text, user, at)
		}
	}
	if text, _, _ := Reason(
		testNode("n", func(n *corev1.Node) { n.Status.Conditions = nil }),
	); text != "Not responding" {
		t.Errorf("of a node that does not report: %q", text)
	}
}

func TestShortNames(t *testing.T) {
	got := ShortNames([]*corev1.Node{
		testNode("a.example.com"), testNode("a.example.org"), testNode("b.example.org"), testNode("c"),
		testNode("ip-10-0-0-1.internal", func(n *corev1.Node) { n.Annotations[wire.AnnotationNodeName] = "gpu1" }),
		testNode("d.x", func(n *corev1.Node) { n.Annotations[wire.AnnotationNodeName] = "Not_valid" }),
	})
	want := map[string]string{"a.example.com": "a-example-com", "a.example.org": "a-example-org",
		"b.example.org": "b", "c": "c", "ip-10-0-0-1.internal": "gpu1", "d.x": "d"}
	for n, w := range want {
		if got[n] != w {
			t.Errorf("%s: %s, want %s", n, got[n], w)
		}
	}
}

func TestFeaturesFromLabels(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		wire.LabelFeature + "fast":                     "true",
		"feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
		"feature.node.kubernetes.io/cpu-cpuid.AMX":     "false",
		"node.kubernetes.io/instance-type":             "M5.large",
		"example.org/infiniband":                       "true",
		"example.org/rack":                             "r 1",
	}}}
	got := Features(
		n,
		[]string{
			"feature.node.kubernetes.io/cpu-cpuid.*",
			"node.kubernetes.io/instance-type",
			"example.org/infiniband",
			"example.org/rack",
			"example.org/inf",
		},
	)
	if want := []string{"avx512f", "fast", "infiniband", "m5.large", "r_1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Features(n, nil); !slices.Equal(got, []string{"fast"}) {
		t.Errorf("without patterns: %v", got)
	}
	n.Annotations = map[string]string{wire.AnnotationFeatures: "r_1,none,fast"}
	got = Features(n, []string{"feature.node.kubernetes.io/cpu-cpuid.*", "example.org/rack"})
	if want := []string{"r_1", "fast", "avx512f"}; !slices.Equal(got, want) {
		t.Errorf("in the order of the annotation: %v, want %v", got, want)
	}
}

func TestAssumedHardware(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{nfdThreads: "true", nfdNUMA: "true"},
			Annotations: map[string]string{},
		},
	}
	if got, want := AssumedHardware(
		n,
	), "sockets assumed, though the node has several NUMA nodes (annotations berth.hpc/sockets, berth.hpc/cores-per-socket, berth.hpc/threads-per-core)"; got != want {
		t.Errorf("%q", got)
	}
	if ThreadsPerCore(n) != 2 {
		t.Error("two threads a core are labelled")
	}
	n.Annotations[wire.AnnotationSockets] = "2"
	if got := AssumedHardware(n); got != "" {
		t.Errorf("%q", got)
	}
}
