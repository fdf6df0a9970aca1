package jobs

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// Submission is a job to submit.
type Submission struct {
	Job         job.Job
	Components  []job.Job // the further components of a heterogeneous job
	Script      []byte    // the bytes of the batch script; empty: an allocation without a script
	Environment []string  // NAME=value

	// Command is the name of the command that submits the job, for its trace; "": unknown.
	Command string

	// Namespace, if not empty, is the namespace of another user for whom an
	// administrator submits the job.
	Namespace string

	// DryRun checks the job without creating it; it draws no id.
	DryRun bool
	// Forecast, with DryRun, requests when the job would start.
	Forecast bool
	// Waiting, if not nil, is called with the reason before each pause of a retry.
	Waiting func(err error)
}

// Submitted is a job that the cluster has accepted.
type Submitted struct {
	ID        int64 // 0 after a dry run
	Namespace string
	Name      string // of the BatchJob
	Partition string
	User      string
	Forecast  *wire.Forecast // nil: it was not requested, or is unknown
}

const (
	// retryTimeout bounds how long a submission is retried while responses are lost or
	// another leader of the scheduler takes over.
	retryTimeout = 30 * time.Second
	firstPause   = 50 * time.Millisecond
	lastPause    = 2 * time.Second
)

// Submit creates the job, normally with one request. If the response is lost, it sends the
// request again with the same object name, so that no second job is created. The error is
// a *kube.Error: of kind Denied or Busy if the cluster refuses the job.
func (c *Client) Submit(ctx context.Context, s *Submission) (*Submitted, error) {
	script, environment := compressPayload(s.Script, env.Join(s.Environment))
	object := batchJob{
		APIVersion: apiVersion, Kind: "BatchJob",
		Metadata: metadata{Name: "j-" + c.nonce(), Namespace: c.Namespace()},
		Spec: batchJobSpec{
			Job:         s.Job,
			Script:      script,
			Environment: environment,
			Components:  s.Components,
		},
	}
	if err := object.Spec.checkPayload(s); err != nil {
		return nil, err
	}
	switch {
	case s.Forecast:
		object.Metadata.Annotations = map[string]string{wire.AnnotationForecast: ""}
	case !s.DryRun:
		object.Metadata.Annotations = c.trace.annotations(s.Command)
	}
	if s.Namespace != "" {
		object.Metadata.Namespace = s.Namespace
	}
	deadline, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		done, err := c.create(ctx, &object, s.DryRun)
		if err == nil || !kube.IsRetryable(err) {
			return done, err
		}
		if s.Waiting != nil {
			s.Waiting(err)
		}
		select {
		case <-deadline.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// checkPayload refuses, before anything is sent, a script that is longer than Slurm's
// limit, and a script and an environment that together do not fit into the object of a
// job. If they do not fit, it first compresses the script with a higher level.
func (b *batchJobSpec) checkPayload(s *Submission) error {
	if len(s.Script) > bounds.MaxScript {
		return &kube.Error{Kind: kube.Denied, Message: bounds.TooLong}
	}
	size := func() int { return len(b.Script) + len(b.Environment) }
	if size() <= bounds.MaxPayload {
		return nil
	}
	b.Script = encoder(zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(4<<20)).
		EncodeAll(s.Script, nil)
	if size() <= bounds.MaxPayload {
		return nil
	}
	return &kube.Error{Kind: kube.Denied, Message: fmt.Sprintf("script and environment have %d bytes when compressed, "+
		"and the limit is %d: move data out of the script into a file", size(), bounds.MaxPayload)}
}

// SubmitWithRetry submits, and retries at most retries times while the queue is
// full: after pauses of one second, two, three and so on, as Slurm's commands do.
// pause makes the n-th pause, counted from 1, and returns false to give up.
func SubmitWithRetry(retries int, pause func(n int) bool, submit func() (*Submitted, error)) (*Submitted, error) {
	done, err := submit()
	for n := 1; n <= retries && kube.KindOf(err) == kube.Busy && pause(n); n++ {
		done, err = submit()
	}
	return done, err
}

// create sends the object once. If an object of that name already exists, it comes
// from an attempt whose response was lost.
func (c *Client) create(ctx context.Context, object *batchJob, dryRun bool) (*Submitted, error) {
	path := apiRoot + "/namespaces/" + object.Metadata.Namespace + "/batchjobs"
	query := map[string][]string{"fieldValidation": {"Strict"}}
	if dryRun {
		query["dryRun"] = []string{"All"}
	}
	var got batchJob
	err := c.api.Post(ctx, path, query, object, &got)
	if kube.KindOf(err) == kube.AlreadyExists {
		err = c.api.Get(ctx, path+"/"+object.Metadata.Name, nil, &got)
	}
	if err != nil {
		return nil, err
	}
	return &Submitted{
		ID: got.Spec.JobID, Namespace: got.Metadata.Namespace, Name: got.Metadata.Name,
		Partition: got.Spec.Partition, User: got.Spec.User, Forecast: forecastOf(&got),
	}, nil
}

// nonce returns 20 random lower-case letters and digits (100 bits).
func nonce() string { return strings.ToLower(rand.Text()[:20]) }

// Compress compresses a script or environment for a BatchJob (zstd). It returns nil
// for no data.
func Compress(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return fastEncoder().EncodeAll(data, nil)
}

// compressPayload compresses script and environment as Compress does, with one encoder: its
// tables are the largest part of what a submission allocates.
func compressPayload(script, environment []byte) (_, _ []byte) {
	w := fastEncoder()
	encode := func(data []byte) []byte {
		if len(data) == 0 {
			return nil
		}
		return w.EncodeAll(data, nil)
	}
	return encode(script), encode(environment)
}

func fastEncoder() *zstd.Encoder {
	return encoder(zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(128<<10))
}

// encoder returns an encoder that one goroutine uses.
func encoder(options ...zstd.EOption) *zstd.Encoder {
	w, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil { // only for invalid options
		panic(err)
	}
	return w
}

// maxPlain bounds the memory of Decompress in bytes; scripts are smaller.
const maxPlain = 64 << 20

// Decompress returns the data that Compress compressed. It refuses to use more than
// maxPlain of memory.
func Decompress(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlain))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(data, nil)
}
