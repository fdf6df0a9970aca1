package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

func attachPath(id int64) string { return attachPathOf(strconv.FormatInt(id, 10)) }

func attachPathOf(name string) string {
	return wire.QueueRoot + "/jobs/" + url.PathEscape(name) + "/attach"
}

// AttachTo is Attach for a job in the notation of users: "12", "12_3", "12+1".
func (c *Client) AttachTo(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPathOf(name), wire.AttachProtocol)
}

// Attach connects to the agent of the job's first node. The protocol on the
// connection is that of internal/step. The connection ends with ctx.
func (c *Client) Attach(ctx context.Context, id int64) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPath(id), wire.AttachProtocol)
}

// AttachAs is Attach for a client with a name. With a name, the agent soon notices when
// the client is killed.
func (c *Client) AttachAs(ctx context.Context, id int64, client string) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPath(id)+"?"+url.Values{wire.AttachClient: {client}}.Encode(), wire.AttachProtocol)
}

// maxSilence is how long a stream of events may go without a line. The server sends empty
// lines more often than that.
const maxSilence = 45 * time.Second

// errSilent is the cause of the end of a stream after maxSilence.
var errSilent = fmt.Errorf("the queue has sent nothing for %s", maxSilence)

// Events calls fn with every change of the job until the job has ended or fn returns
// false. It reconnects when the connection is lost. With own, the job depends on the
// caller: the cluster cancels the job when no caller with own has been connected for a
// while. The error is that of ctx, a *kube.Error if the cluster refuses,
// or that of an event that cannot be decoded.
func (c *Client) Events(ctx context.Context, id int64, own bool, fn func(*wire.JobEvent) (more bool)) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		done, err := c.events(ctx, id, own, func(e *wire.JobEvent) bool {
			pause = firstPause
			return fn(e)
		})
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errBadEvent):
			return err
		case err != nil && !kube.IsRetryable(err) && kube.KindOf(err) != kube.Unreachable &&
			kube.KindOf(err) != kube.Other:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// events reads one stream. done reports that the job has ended or fn returned false.
func (c *Client) events(ctx context.Context, id int64, own bool, fn func(*wire.JobEvent) bool) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer alive.Stop()
	over := false
	err = c.api.Stream(ctx, attachPath(id), url.Values{"own": {strconv.FormatBool(own)}}, func(line []byte) error {
		alive.Reset(maxSilence)
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		e := new(wire.JobEvent)
		if err := json.Unmarshal(line, e); err != nil {
			return fmt.Errorf("%w of job %d: %w", errBadEvent, id, err)
		}
		if !fn(e) || e.Final {
			over = true
			return errStopStream
		}
		return nil
	})
	return over, err
}

// errBadEvent means that an event cannot be decoded. Another connection would not help.
var errBadEvent = errors.New("malformed event")

// errStopStream ends a stream that is no longer needed.
var errStopStream = errors.New("enough")

// Complete ends the caller's allocation with an exit code (0 to 255). A job that has
// not started is cancelled. It is not an error if the job has ended.
func (c *Client) Complete(ctx context.Context, id int64, code int) error {
	result, err := c.Operate(ctx, status.Operation{
		Verb: status.OpComplete, Jobs: []string{strconv.FormatInt(id, 10)}, Status: int32(code),
	})
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		if item.Error != "" && !item.Ended() {
			return errors.New(item.Error)
		}
	}
	return nil
}

// Pods returns the state of a job's pods and why they do not start. Only the job's
// owner and operators may read it. With usage it also returns what they use, if the
// cluster has a metrics API.
func (c *Client) Pods(ctx context.Context, id int64, usage bool) (*status.PodList, error) {
	q := url.Values{}
	if usage {
		q.Set("usage", "true")
	}
	list := new(status.PodList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/jobs/"+strconv.FormatInt(id, 10)+"/pods", q, list); err != nil {
		return nil, err
	}
	return list, nil
}
