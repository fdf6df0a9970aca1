package nodeinfo

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// Features returns the node's features: those of Berth's own label, and those
// that the patterns (ClusterSpec.FeatureLabels) derive from other labels. The
// features that the node's annotation lists come first, in its order; the
// others are sorted.
func Features(n *corev1.Node, patterns []string) []string {
	var out []string
	for l, value := range n.Labels {
		if f, ok := strings.CutPrefix(l, wire.LabelFeature); ok && f != "" {
			out = append(out, f)
		}
		for _, p := range patterns {
			if f := featureOf(p, l, value); f != "" {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	order := strings.Split(n.Annotations[wire.AnnotationFeatures], ",")
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(position(order, a), position(order, b)) })
	return out
}

// position returns the index of a in the list, or the list's length.
func position(list []string, a string) int {
	if i := slices.Index(list, a); i >= 0 {
		return i
	}
	return len(list)
}

// featureOf returns the feature that a pattern derives from a label, or "".
func featureOf(pattern, label, value string) string {
	prefix, wildcard := strings.CutSuffix(pattern, "*")
	rest, ok := strings.CutPrefix(label, prefix)
	switch {
	case !ok || !wildcard && rest != "" || value == "false" || value == "":
		return ""
	case value != yes:
		return featureName(value)
	case rest != "":
		return featureName(rest)
	}
	return featureName(label[strings.LastIndexByte(label, '/')+1:])
}

// featureName returns s as a word that --constraint accepts.
func featureName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, strings.ToLower(s))
}
