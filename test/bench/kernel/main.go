// Command kernel runs a kernel that memory or the cache bounds, and prints its rate in GB/s; or
// it disturbs others until it is killed. make bench-cores runs it in jobs and in pods.
//
//	kernel memory|cache SECONDS
//	kernel noise-compute|noise-memory THREADS
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fail()
	}
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail()
	}
	switch kind := os.Args[1]; kind {
	case "memory", "cache":
		runtime.GOMAXPROCS(1)
		fmt.Printf("%s %.2f\n", kind, triad(elements[kind], time.Duration(n)*time.Second))
	case "noise-compute", "noise-memory":
		runtime.GOMAXPROCS(n)
		for range n {
			go triad(elements[kind], 1<<62)
		}
		select {}
	default:
		fail()
	}
}

// elements are the elements of each of the three arrays: 32 MiB each, more than a core's
// caches, or 64 KiB, which its second-level cache holds.
var elements = map[string]int{"memory": 4 << 20, "noise-memory": 4 << 20, "cache": 8 << 10, "noise-compute": 1 << 10}

// triad computes a = b + 3c, as STREAM does, for that time, and returns GB/s.
func triad(n int, limit time.Duration) float64 {
	a, b, c := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range a {
		b[i], c[i] = float64(i), 1
	}
	start, rounds := time.Now(), 0
	for time.Since(start) < limit {
		for range max(1, 1<<20/n) {
			for i := range a {
				a[i] = b[i] + 3*c[i]
			}
			rounds++
		}
	}
	return float64(rounds) * float64(n) * 24 / time.Since(start).Seconds() / 1e9
}

func fail() {
	fmt.Fprintln(os.Stderr, "usage: kernel memory|cache SECONDS | noise-compute|noise-memory THREADS")
	os.Exit(2)
}
