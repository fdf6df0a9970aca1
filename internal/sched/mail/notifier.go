package mail

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

const (
	waiting   = 10000            // mails that may wait to be sent
	attempts  = 3                // per mail
	firstWait = 2 * time.Second  // between attempts; it doubles
	lookEvery = 10 * time.Second // at the time that jobs have left
)

// Notifier sends mails while this process leads. Changed may be called by many
// goroutines; it never waits.
type Notifier struct {
	// Settings gives those in force; nil: mail is not set up.
	Settings func() *v1alpha1.MailSettings
	// Jobs lists the jobs there are.
	Jobs func() []*v1alpha1.BatchJob
	// Family lists an array's own job and the tasks split off it.
	Family func(id int64) []*v1alpha1.BatchJob
	Now    func() time.Time
	Log    *slog.Logger

	queue chan Message
	told  map[told]bool

	mu     sync.Mutex
	arrays map[int64]whole
}

// told is a share of a time limit that was told about.
type told struct {
	job     int64
	attempt int32
	kind    string
}

// New makes a Notifier; Run starts it.
func New(settings func() *v1alpha1.MailSettings, jobs func() []*v1alpha1.BatchJob,
	family func(id int64) []*v1alpha1.BatchJob,
	now func() time.Time, log *slog.Logger) *Notifier {
	return &Notifier{Settings: settings, Jobs: jobs, Family: family, Now: now, Log: log,
		queue: make(chan Message, waiting),
		told:  map[told]bool{}, arrays: map[int64]whole{}}
}

// Changed takes in a change of a job, in the form of a store's subscription.
func (n *Notifier) Changed(old, now *v1alpha1.BatchJob) {
	if now != nil && now.Spec.Job.Het != nil && now.Spec.Job.Het.Offset > 0 {
		return // mail is about the job, which its first component stands for
	}
	for _, event := range Events(old, now) {
		if event == Requeue && now.Status.StartTime == nil {
			n.put(old, event, nil) // it knows how long the job ran
			continue
		}
		n.put(now, event, nil)
	}
	if now != nil && len(now.Spec.Job.Mail.Types) > 0 {
		n.ofArray(old, now)
	}
}

// put queues the mail about an event; change, where not nil, changes it first.
func (n *Notifier) put(b *v1alpha1.BatchJob, event string, change func(*Message)) {
	s := n.Settings()
	if s == nil {
		return
	}
	m, ok := Compose(b, event, s.Domain, n.Now())
	if !ok {
		n.Log.Warn("no mail: no address", "job", b.Spec.JobID, "user", b.Spec.User)
		return
	}
	if change != nil {
		change(&m)
	}
	select {
	case n.queue <- m:
	default:
		n.Log.Warn("mail dropped: too many wait", "job", m.JobID, "event", event)
	}
}

// Run sends what waits, one mail after the other, until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.look()
		case m := <-n.queue:
			n.send(ctx, m)
		}
	}
}

// look tells about jobs that have used up a share of their time.
func (n *Notifier) look() {
	n.forget()
	if n.Settings() == nil {
		return
	}
	seen := map[told]bool{}
	for _, b := range n.Jobs() {
		kind := Reached(b, n.Now())
		if kind == "" {
			continue
		}
		key := told{b.Spec.JobID, b.Status.Attempt, kind}
		if !n.told[key] {
			n.put(b, kind, nil)
		}
		seen[key] = true
	}
	n.told = seen
}

func (n *Notifier) send(ctx context.Context, m Message) {
	pause := firstWait
	for try := 1; ; try++ {
		s := n.Settings()
		if s == nil {
			return
		}
		err := Send(ctx, s, m)
		if err == nil {
			return
		}
		if try == attempts {
			n.Log.Warn("mail not sent", "job", m.JobID, "event", m.Event, "error", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause *= 2
	}
}
