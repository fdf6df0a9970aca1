package mail

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

const (
	maxQueued     = 10000            // mails that wait to be sent
	attempts      = 3                // per mail
	firstBackoff  = 2 * time.Second  // between attempts; it doubles
	checkInterval = 10 * time.Second // of time limits
)

// Notifier sends mails while this process leads. Changed may be called by many
// goroutines at a time; it never blocks.
type Notifier struct {
	// Settings returns the current settings; nil: mail is not configured.
	Settings func() *v1alpha1.MailSettings
	// Jobs returns all jobs.
	Jobs func() []*v1alpha1.BatchJob
	// Family returns an array's own job and the tasks split off it.
	Family func(id int64) []*v1alpha1.BatchJob
	Now    func() time.Time
	Log    *slog.Logger

	queue chan Message
	sent  map[limitMail]bool

	mu     sync.Mutex
	arrays map[int64]arrayMails
}

// limitMail is a mail about a share of a time limit.
type limitMail struct {
	job     int64
	attempt int32
	kind    string
}

// New returns a Notifier; Run starts it.
func New(settings func() *v1alpha1.MailSettings, jobs func() []*v1alpha1.BatchJob,
	family func(id int64) []*v1alpha1.BatchJob,
	now func() time.Time, log *slog.Logger) *Notifier {
	return &Notifier{Settings: settings, Jobs: jobs, Family: family, Now: now, Log: log,
		queue: make(chan Message, maxQueued),
		sent:  map[limitMail]bool{}, arrays: map[int64]arrayMails{}}
}

// Changed handles a change of a job; it has the form of a store's subscription.
func (n *Notifier) Changed(old, now *v1alpha1.BatchJob) {
	if now != nil && now.Spec.Job.Het != nil && now.Spec.Job.Het.Offset > 0 {
		return // mail is about the whole job, which its first component represents
	}
	for _, event := range Events(old, now) {
		if event == Requeue && now.Status.StartTime == nil {
			n.put(old, event, nil) // it has the run time of the job
			continue
		}
		n.put(now, event, nil)
	}
	if now != nil && len(now.Spec.Job.Mail.Types) > 0 {
		n.arrayChanged(old, now)
	}
}

// put queues the mail about an event; change, if not nil, modifies it first.
func (n *Notifier) put(b *v1alpha1.BatchJob, event string, change func(*Message)) {
	s := n.Settings()
	if s == nil {
		return
	}
	m, ok := Compose(b, event, s.Domain, n.Now())
	if !ok {
		n.Log.Warn("mail not sent: the address is invalid", "job", b.Spec.JobID, "user", b.Spec.User)
		return
	}
	if change != nil {
		change(&m)
	}
	select {
	case n.queue <- m:
	default:
		n.Log.Warn("mail not sent: too many mails are queued", "job", m.JobID, "event", event)
	}
}

// Run sends the queued mails, one after the other, until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.checkTimeLimits()
		case m := <-n.queue:
			n.send(ctx, m)
		}
	}
}

// checkTimeLimits queues mails about jobs that have used up a share of their time
// limit.
func (n *Notifier) checkTimeLimits() {
	n.forget()
	if n.Settings() == nil {
		return
	}
	seen := map[limitMail]bool{}
	for _, b := range n.Jobs() {
		kind := Reached(b, n.Now())
		if kind == "" {
			continue
		}
		key := limitMail{b.Spec.JobID, b.Status.Attempt, kind}
		if !n.sent[key] {
			n.put(b, kind, nil)
		}
		seen[key] = true
	}
	n.sent = seen
}

func (n *Notifier) send(ctx context.Context, m Message) {
	pause := firstBackoff
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
