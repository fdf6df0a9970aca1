package v1alpha1

// FederationShift is the position of the cluster's number in the job ids of a federation: the
// lower 26 bits number the jobs of the cluster, as in Slurm.
const FederationShift = 26

// Federation makes the cluster a member of a federation: job ids of its members do not clash,
// and commands with --federation list the members together.
type Federation struct {
	// Name of the federation, the same in all members.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9_.]*$`
	Name string `json:"name"`
	// ID is the number of the cluster in the federation. It is in the bits above the lower 26 of
	// the ids of jobs, so that job 1 of cluster 2 has the id 134217729. FirstJobID and MaxJobID
	// limit the lower bits.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31
	ID int32 `json:"id"`
}
