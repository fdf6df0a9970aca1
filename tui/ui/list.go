package ui

// List is a cursor and a window over Len rows. It does not hold the rows: their
// owner sets the number of rows and draws those between Top and Top+Height.
type List struct {
	Len, Height int
	Cursor, Top int
}

// Resize sets the number of rows and how many of them are visible.
func (l *List) Resize(rows, height int) {
	l.Len, l.Height = rows, max(0, height)
	l.Move(0)
}

// Move moves the cursor by n rows and the window with it.
func (l *List) Move(n int) { l.MoveTo(l.Cursor + n) }

// MoveTo moves the cursor to row i, or to the nearest row.
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

// Press moves the cursor as an action says. It returns false for an action that
// moves nothing.
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

// Scroll moves the window by n rows and keeps the cursor inside it.
func (l *List) Scroll(n int) {
	l.Top = max(0, min(l.Top+n, l.Len-l.Height))
	l.MoveTo(max(l.Top, min(l.Cursor, l.Top+l.Height-1)))
}

// Visible returns the visible rows: from first up to, not including, last.
func (l *List) Visible() (first, last int) {
	return l.Top, min(l.Len, l.Top+l.Height)
}
