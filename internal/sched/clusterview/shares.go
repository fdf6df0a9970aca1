package clusterview

import (
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// Shares returns the tree of accounts with what each association has used. qosUsage
// is what the jobs of each QOS have used, in billing-seconds.
func Shares(s *snapshot.Snapshot, qosUsage map[string]float64) *status.ShareList {
	p := s.Priorities()
	wall, qosWall := s.WallMinutes()
	shares := p.Shares()
	addWallMinutes(shares, wall)
	return &status.ShareList{FairTree: p.FairTree(), Items: shares, QOSUsage: qosUsage, QOSWallMins: qosWall}
}

// addWallMinutes adds to the shares, which are in the order of their tree, how long
// the jobs of each ran. The jobs of an account are those of all associations below.
func addWallMinutes(shares []status.Share, wall map[status.AssociationKey]float64) {
	var path []int // indexes of the accounts above the share, and of the share
	for i := range shares {
		s := &shares[i]
		path = append(path[:min(s.Depth, len(path))], i)
		if s.User == "" {
			continue
		}
		for _, k := range path {
			shares[k].WallMins += wall[status.AssociationKey{Account: s.Account, User: s.User}]
		}
	}
}
