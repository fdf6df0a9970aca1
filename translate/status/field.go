package status

// Field is a field of a Job: its JSON name, whether it is omitted if it is zero, and
// its address in a row. Exactly one of the functions is set. They replace reflection
// when 10,000 rows are encoded or decoded.
type Field struct {
	Name  string
	Omit  bool
	Text  func(*Job) *string
	Flag  func(*Job) *bool
	Small func(*Job) *int32
	Large func(*Job) *int64
}
