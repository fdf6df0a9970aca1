package jobs

import "github.com/berth-hpc/berth/translate/job"

// The types in this file are the parts of the objects of api/v1alpha1 that clients
// write and read. The light commands do not import that package, which links
// apimachinery: decision 0048 has the numbers. A test compares the fields.

const (
	apiVersion = "berth.hpc/v1alpha1"
	apiRoot    = "/apis/" + apiVersion
)

// batchJob is a BatchJob.
type batchJob struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Spec       batchJobSpec   `json:"spec"`
	Status     batchJobStatus `json:"status,omitzero"`
}

// metadata is the metadata of an object.
type metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// batchJobSpec is a BatchJobSpec.
type batchJobSpec struct {
	JobID       int64          `json:"jobID,omitempty"`
	User        string         `json:"user,omitempty"`
	Partition   string         `json:"partition,omitempty"`
	Job         job.Job        `json:"job"`
	Script      []byte         `json:"script,omitempty"`
	Environment []byte         `json:"environment,omitempty"`
	Components  []job.Job      `json:"components,omitempty"`
	Cancel      *cancelRequest `json:"cancel,omitempty"`
}

// cancelRequest is a CancelRequest.
type cancelRequest struct {
	By string `json:"by,omitempty"`
}

// batchJobStatus is a BatchJobStatus.
type batchJobStatus struct {
	State string `json:"state,omitempty"`
}

// user is a User.
type user struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		UID       int64  `json:"uid"`
		GID       int64  `json:"gid"`
		Namespace string `json:"namespace"`
	} `json:"spec"`
}
