// Package v1alpha1 has the resource types of Berth (group berth.hpc): the BatchJob, which
// is a job in the queue, and the objects with which administrators configure the cluster.
//
// +kubebuilder:object:generate=true
// +groupName=berth.hpc
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "berth.hpc", Version: "v1alpha1"}

// AddToScheme registers the types of this package with s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&BatchJob{}, &BatchJobList{}, &Cluster{}, &ClusterList{},
		&Partition{}, &PartitionList{}, &User{}, &UserList{},
		&Account{}, &AccountList{}, &QOS{}, &QOSList{},
		&Reservation{}, &ReservationList{}, &NodePool{}, &NodePoolList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
