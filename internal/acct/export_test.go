package acct

import "github.com/berth-hpc/berth/translate/status"

// CompleteEvents is completeEvents.
func (r *Recorder) CompleteEvents(list []status.AcctEvent) []status.AcctEvent {
	return r.completeEvents(list)
}
