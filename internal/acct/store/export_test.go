package store

import "fmt"

// LimitPages bounds the size of a SQLite database beyond its present one.
func LimitPages(s *Store, more int) error {
	var pages int
	if err := s.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	var limit int
	return s.write.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)).Scan(&limit)
}
