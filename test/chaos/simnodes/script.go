package simnodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// script writes the lines of the script of load.
type script struct {
	name    string
	welcome *wire.Welcome
	output  string // directory
	lasts   time.Duration
	exit    int
	stopped atomic.Bool // suspended
}

// run runs the script until it ends or ctx does.
func (s *script) run(ctx context.Context) error {
	name := filepath.Join(s.output, fmt.Sprintf("job-%d.batch.0", s.welcome.JobID))
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.say(f, "start"); err != nil {
		return err
	}
	ends := time.Now().Add(s.lasts)
	for time.Now().Before(ends) || s.stopped.Load() {
		if pause(ctx, min(250*time.Millisecond, max(time.Until(ends), 10*time.Millisecond))); ctx.Err() != nil {
			return nil
		}
		if !s.stopped.Load() {
			if err := s.say(f, "beat"); err != nil {
				return err
			}
		}
	}
	return s.say(f, "end")
}

// say writes one line, with one write.
func (s *script) say(f *os.File, kind string) error {
	w := s.welcome
	var array, task, exit int64
	if w.Array != nil {
		array, task = w.Array.JobID, int64(w.Array.Index)
	}
	if kind == "end" {
		exit = int64(s.exit)
	}
	now := time.Now()
	_, err := fmt.Fprintf(f, "%s at=%d.%06d job=%d array=%d task=%d restart=%d name=%s user=%s node=%s "+
		"step=batch proc=0 gpus= pid=0 exit=%d\n", kind, now.Unix(), now.Nanosecond()/1000, w.JobID, array, task,
		w.Restarts, s.name, w.User, w.Hosts[0].Name, exit)
	return err
}
