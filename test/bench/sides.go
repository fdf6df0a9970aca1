package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// sides has the results of each scheduler, by its name.
type sides[T any] map[string][]T

const sidesHead = "| what (medians) | Berth | kube-scheduler | ratio | to pass |\n|---|---|---|---|---|\n"

// row writes the medians of one figure and their ratio, which is above 1 where
// Berth is better, whether a higher or a lower value is.
func (s sides[T]) row(t *strings.Builder, what, format, goal string, more bool, f func(T) float64) {
	ours, theirs := middle(s[wire.SchedulerName], f), middle(s[corev1.DefaultSchedulerName], f)
	ratio := ours / theirs
	if !more {
		ratio = theirs / ours
	}
	fmt.Fprintf(t, "| %s | "+format+" | "+format+" | %.2f | %s |\n", what, ours, theirs, ratio, goal)
}

func middle[T any](of []T, f func(T) float64) float64 {
	v := make([]float64, len(of))
	for i := range of {
		v[i] = f(of[i])
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// overFleet ends a table: where and when it was measured, and the load before.
func overFleet(busy string) string {
	return fmt.Sprintf("\n%d nodes that are not real. Measured on %s with %d CPUs, Linux %s, load %s before.\n",
		podNodes,
		time.Now().Format("2006-01-02"), runtime.NumCPU(), firstField("/proc/sys/kernel/osrelease"), busy)
}
