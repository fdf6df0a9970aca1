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

// AttachTo is Attach to a job by the name that users give it: 12, 12_3, 12+1.
func (c *Client) AttachTo(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPathOf(name), wire.AttachProtocol)
}

// Attach connects to the agent of the job's first node; internal/step is
// spoken there. ctx ends the connection.
func (c *Client) Attach(ctx context.Context, id int64) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPath(id), wire.AttachProtocol)
}

// AttachAs is Attach by a client that names itself, so that the agent learns of
// it soon when the client is killed.
func (c *Client) AttachAs(ctx context.Context, id int64, client string) (io.ReadWriteCloser, error) {
	return c.api.Upgrade(ctx, attachPath(id)+"?"+url.Values{wire.AttachClient: {client}}.Encode(), wire.AttachProtocol)
}

// silence is how long a stream of events may be without a sign of life.
const silence = 45 * time.Second

// errSilent ends a stream that shows no life.
var errSilent = errors.New("no sign of life from the queue")

// Events calls fn with every change of the job until it is over or fn returns
// false, and connects again when the connection is lost. With own the caller
// is who the job waits for: the cluster cancels the job when nobody has asked
// like this for a while.
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
		case err != nil && !kube.Lost(err) && kube.KindOf(err) != kube.Unreachable && kube.KindOf(err) != kube.Other:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// events reads one stream; done means that no more is wanted or to come.
func (c *Client) events(ctx context.Context, id int64, own bool, fn func(*wire.JobEvent) bool) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer alive.Stop()
	over := false
	err = c.api.Stream(ctx, attachPath(id), url.Values{"own": {strconv.FormatBool(own)}}, func(line []byte) error {
		alive.Reset(silence)
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		e := new(wire.JobEvent)
		if err := json.Unmarshal(line, e); err != nil {
			return fmt.Errorf("events of job %d: %w", id, err)
		}
		if !fn(e) || e.Final {
			over = true
			return errEnough
		}
		return nil
	})
	return over, err
}

// errEnough ends a stream that is not needed any more.
var errEnough = errors.New("enough")

// Complete ends the caller's allocation with an exit code (0 to 255); one that
// does not run yet is cancelled. A job that is over already is no error.
func (c *Client) Complete(ctx context.Context, id int64, code int) error {
	result, err := c.Operate(ctx, status.Operation{
		Verb: status.OpComplete, Jobs: []string{strconv.FormatInt(id, 10)}, Status: int32(code),
	})
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		if item.Error != "" && item.Error != ErrDone && item.Error != ErrInvalidID {
			return errors.New(item.Error)
		}
	}
	return nil
}

// Pods tells how a job's pods are, and why they do not start: its owner and
// operators may know. With usage it also tells what they use, where the cluster
// has a metrics API.
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
