package status

// memberShift is the position of the cluster's number in the job ids of a federation.
const memberShift = 26

// MemberOf returns the number of the cluster that assigned the id of a federation's job; 0 for
// other ids.
func MemberOf(id int64) int64 { return id >> memberShift }
