package jobs

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// Submission is a job to be submitted.
type Submission struct {
	Job         job.Job
	Components  []job.Job // further ones, of a heterogeneous job
	Script      []byte    // as is; empty: an allocation without a script
	Environment []string  // NAME=value

	// Namespace, if not empty, is that of another user, whom an administrator
	// submits for.
	Namespace string

	// DryRun has everything checked and nothing created; no id is drawn.
	DryRun bool
	// Forecast, with DryRun, asks when the job would start.
	Forecast bool
	// Waiting, if not nil, is told why before each pause of a retry.
	Waiting func(err error)
}

// Submitted is a job that the cluster has taken.
type Submitted struct {
	ID        int64 // 0 after a dry run
	Namespace string
	Name      string // of the BatchJob
	Partition string
	User      string
	Forecast  *wire.Forecast // if it was asked for and the cluster says
}

// batchJob is the part of api/v1alpha1's BatchJob that a client writes and
// reads. The light commands do without that package, which links apimachinery;
// a test keeps the two alike.
type batchJob struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   metadata     `json:"metadata"`
	Spec       batchJobSpec `json:"spec"`
}

type metadata struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`

	Annotations map[string]string `json:"annotations,omitempty"`
}

type batchJobSpec struct {
	JobID       int64     `json:"jobID,omitempty"`
	User        string    `json:"user,omitempty"`
	Partition   string    `json:"partition,omitempty"`
	Job         job.Job   `json:"job"`
	Script      []byte    `json:"script,omitempty"`
	Environment []byte    `json:"environment,omitempty"`
	Components  []job.Job `json:"components,omitempty"`
}

const (
	apiVersion = "berth.hpc/v1alpha1"
	apiRoot    = "/apis/" + apiVersion

	// patience is how long a submission is sent again while answers are lost
	// or the scheduler changes its leader.
	patience   = 30 * time.Second
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Submit creates the job, in one request when all goes well. A lost answer is
// asked for again under the same object name, so no second job comes of it.
func (c *Client) Submit(ctx context.Context, s *Submission) (*Submitted, error) {
	object := batchJob{
		APIVersion: apiVersion, Kind: "BatchJob",
		Metadata: metadata{Name: "j-" + c.nonce(), Namespace: c.Namespace()},
		Spec: batchJobSpec{
			Job: s.Job, Script: Compress(s.Script), Environment: Compress(env.Join(s.Environment)), Components: s.Components,
		},
	}
	if s.Forecast {
		object.Metadata.Annotations = map[string]string{wire.AnnotationForecast: ""}
	}
	if s.Namespace != "" {
		object.Metadata.Namespace = s.Namespace
	}
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		done, err := c.create(ctx, &object, s.DryRun)
		if err == nil || !kube.Lost(err) {
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

// Patiently submits, and again while the queue is full: after pauses of one
// second, two, three and so on, as Slurm's commands do, most of them. pause
// waits and tells whether to go on; n counts from 1.
func Patiently(most int, pause func(n int) bool, submit func() (*Submitted, error)) (*Submitted, error) {
	done, err := submit()
	for n := 1; n <= most && kube.KindOf(err) == kube.Busy && pause(n); n++ {
		done, err = submit()
	}
	return done, err
}

// create sends the object once. An object of that name that already exists is
// ours, from an attempt whose answer was lost.
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

// nonce is 20 random lower-case letters and digits (100 bits).
func nonce() string { return strings.ToLower(rand.Text()[:20]) }

// Compress packs a script or environment as a BatchJob holds it (zstd). Empty
// stays empty.
func Compress(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(128<<10))
	if err != nil { // only wrong options, which these are not
		panic(err)
	}
	return w.EncodeAll(data, nil)
}

// maxPlain bounds what Decompress makes: a script is smaller.
const maxPlain = 64 << 20

// Decompress undoes Compress.
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
