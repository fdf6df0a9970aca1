package ui

// Viewport is a window over lines of text that scrolls with the keys for
// movement. The zero value shows the first lines.
type Viewport struct {
	// Top is the first visible line, Height the number of lines that fit, and Len
	// the number of lines, as of the last call of Window.
	Top, Height, Len int
}

// Press scrolls as an action says. It returns false for an action that does not
// scroll.
func (v *Viewport) Press(a Action) bool {
	page := max(1, v.Height-1)
	switch a {
	case Up:
		v.Top--
	case Down:
		v.Top++
	case PageUp:
		v.Top -= page
	case PageDown:
		v.Top += page
	case HalfUp:
		v.Top -= max(1, page/2)
	case HalfDown:
		v.Top += max(1, page/2)
	case Top:
		v.Top = 0
	case Bottom:
		v.Top = v.Len
	default:
		return false
	}
	v.clamp()
	return true
}

// ScrollBy scrolls by n lines, up if n is negative.
func (v *Viewport) ScrollBy(n int) {
	v.Top += n
	v.clamp()
}

func (v *Viewport) clamp() { v.Top = max(0, min(v.Top, v.Len-v.Height)) }

// Window returns the visible lines where height of them fit.
func (v *Viewport) Window(lines []string, height int) []string {
	v.Len, v.Height = len(lines), max(0, height)
	v.clamp()
	return lines[v.Top:min(len(lines), v.Top+v.Height)]
}
