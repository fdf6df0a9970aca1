package status

// Field is a field of a Job: its JSON name, whether it is left out where it is
// zero, and where it is in a row. Exactly one of the functions is set. They
// take the place of reflection where 10,000 rows are written or read.
type Field struct {
	Name  string
	Omit  bool
	Text  func(*Job) *string
	Flag  func(*Job) *bool
	Small func(*Job) *int32
	Large func(*Job) *int64
}
