// Package faults injects failures into a cluster, from a plan that follows from a seed, so
// that a run can be repeated, and shrunk to the faults that matter. A new kind of fault is
// one function.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/history"
)

// Kind is a kind of fault.
type Kind struct {
	Name, Text string
	// weight is how often it is chosen, relative to the others.
	weight int
	// possible reports whether the cluster can have it, and may wait until it can; nil:
	// every cluster, at any time.
	possible func(*cluster.Cluster) bool
	// inject makes the fault, and returns when the cluster is whole again, with what it
	// hit.
	inject func(context.Context, *cluster.Cluster, *rand.Rand) (target string, err error)
}

// Fault is one fault of a plan.
type Fault struct {
	At   time.Duration // since the beginning of the load
	Kind string
	Seed uint64
}

func (f Fault) String() string { return fmt.Sprintf("%v:%s:%d", f.At, f.Kind, f.Seed) }

// Parse parses the form of Fault.String.
func Parse(text string) (Fault, error) {
	var f Fault
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return f, fmt.Errorf("%q is not TIME:KIND:SEED", text)
	}
	var err error
	if f.At, err = time.ParseDuration(parts[0]); err != nil {
		return f, err
	}
	if _, ok := find(parts[1]); !ok {
		return f, unknownKind(parts[1])
	}
	f.Kind = parts[1]
	_, err = fmt.Sscan(parts[2], &f.Seed)
	return f, err
}

// unknownKind is the error for a name that no kind of fault has.
func unknownKind(name string) error {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Name
	}
	return fmt.Errorf("unknown fault %q; there are %s", name, strings.Join(names, ", "))
}

func find(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Plan returns the faults of a run: about one in every pause, of the named kinds (nil: of
// all).
func Plan(seed uint64, duration, pause time.Duration, names []string) ([]Fault, error) {
	var chosen []Kind
	total := 0
	for _, k := range Kinds {
		if names == nil || slices.Contains(names, k.Name) {
			chosen = append(chosen, k)
			total += k.weight
		}
	}
	for _, n := range names {
		if _, ok := find(n); !ok {
			return nil, unknownKind(n)
		}
	}
	if total == 0 {
		return nil, nil
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var plan []Fault
	for t := pause; t < duration; t += pause/2 + time.Duration(random.Int64N(int64(pause))) {
		n := random.IntN(total)
		for _, k := range chosen {
			if n -= k.weight; n < 0 {
				plan = append(plan, Fault{t.Round(time.Millisecond), k.Name, random.Uint64() % 1e9})
				break
			}
		}
	}
	return plan, nil
}

// Run injects the faults of the plan one after the other, each at its time or when the one
// before it is over. A fault that the cluster cannot have is left out. The error is that of
// a cluster that does not become whole again.
func Run(ctx context.Context, c *cluster.Cluster, plan []Fault, note func(history.Fault)) error {
	start := time.Now()
	for _, f := range plan {
		k, ok := find(f.Kind)
		if !ok || k.possible != nil && !k.possible(c) {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(start.Add(f.At))):
		}
		done := history.Fault{Kind: f.Kind, Begin: time.Now()}
		// A fault is not interrupted: what it has broken, it mends.
		target, err := k.inject(context.WithoutCancel(ctx), c, rand.New(rand.NewPCG(f.Seed, 2)))
		done.Target, done.End = target, time.Now()
		note(done)
		if err != nil {
			return fmt.Errorf("fault %v: %w", f, err)
		}
	}
	return nil
}

// Shrink returns a part of the plan with which fails is still true, and no smaller half of
// any size of which does (delta debugging: Zeller and Hildebrandt, 2002).
func Shrink(plan []Fault, fails func([]Fault) bool) []Fault {
	for size := max(1, len(plan)/2); size > 0; {
		smaller := false
		for i := 0; i+size <= len(plan) && !smaller; i += size {
			if rest := slices.Concat(plan[:i], plan[i+size:]); fails(rest) {
				plan, smaller = rest, true
			}
		}
		if !smaller {
			size /= 2
		}
		size = min(size, max(1, len(plan)/2), len(plan))
	}
	return plan
}
