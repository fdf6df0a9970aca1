package acct

import (
	"fmt"

	"github.com/berth-hpc/berth/translate/status"
)

// Finish is finish, with the steps.
func Finish(r *status.Record) { finish(r, false) }

// LimitPages bounds the size of a SQLite database beyond what it has.
func LimitPages(s *Store, more int) error {
	var pages int
	if err := s.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	var now int
	return s.write.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)).Scan(&now)
}

// Named is named.
func (r *Recorder) Named(list []status.AcctEvent) []status.AcctEvent { return r.named(list) }
