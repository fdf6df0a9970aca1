package ui

// List is a cursor and a window over Len rows. It holds no rows: whoever owns
// them says how many there are and draws those between Top and Top+Height.
type List struct {
	Len, Height int
	Cursor, Top int
}

// Resize sets how many rows there are and how many can be seen.
func (l *List) Resize(rows, height int) {
	l.Len, l.Height = rows, max(0, height)
	l.Move(0)
}

// Move moves the cursor by n rows and the window with it.
func (l *List) Move(n int) { l.MoveTo(l.Cursor + n) }

// To puts the cursor onto row i, or the nearest there is.
func (l *List) MoveTo(i int) {
	l.Cursor = max(0, min(i, l.Len-1))
	if l.Cursor < l.Top {
		l.Top = l.Cursor
	}
	if l.Height > 0 && l.Cursor >= l.Top+l.Height {
		l.Top = l.Cursor - l.Height + 1
	}
	l.Top = max(0, min(l.Top, l.Len-l.Height))
}

// Press does what a key for lists says; false: it is none.
func (l *List) Press(a Action) bool {
	switch a {
	case Up:
		l.Move(-1)
	case Down:
		l.Move(1)
	case PageUp:
		l.Move(-max(1, l.Height-1))
	case PageDown:
		l.Move(max(1, l.Height-1))
	case HalfUp:
		l.Move(-max(1, l.Height/2))
	case HalfDown:
		l.Move(max(1, l.Height/2))
	case Top:
		l.MoveTo(0)
	case Bottom:
		l.MoveTo(l.Len - 1)
	default:
		return false
	}
	return true
}

// Scroll moves the window by n rows; the cursor stays inside.
func (l *List) Scroll(n int) {
	l.Top = max(0, min(l.Top+n, l.Len-l.Height))
	l.MoveTo(max(l.Top, min(l.Cursor, l.Top+l.Height-1)))
}

// Seen is the rows that can be seen: from first up to, not including, last.
func (l *List) Visible() (first, last int) {
	return l.Top, min(l.Len, l.Top+l.Height)
}
