// Command scheduler is Berth's scheduler process (see internal/sched/app).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/berth-hpc/berth/internal/sched/app"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := app.Main(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler: error:", err)
		os.Exit(1)
	}
}
