package status

import "encoding/json"

// ClusterInfo is the response to GET clusterinfo.
type ClusterInfo struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Version    string `json:"version"` // of Berth
	Slurm      string `json:"slurm"`   // the compatible release
	Time       int64  `json:"time"`    // the server's clock, Unix seconds
	Boot       int64  `json:"boot"`    // when the server started, Unix seconds
	Host       string `json:"host,omitempty"`
	Jobs       int    `json:"jobs"` // in the queue, finished ones included
	// NextJobID is the expected id of the next job.
	NextJobID int64 `json:"nextJobID,omitempty"`
	// User is the caller's name in the cluster, empty if it is not a user.
	// Namespace is that of the caller's jobs. Operator: the caller may change every job.
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Operator  bool   `json:"operator,omitempty"`
	// Spec is the Cluster object's spec.
	Spec json.RawMessage `json:"spec,omitempty"`
}
