//go:build !linux

package stdio

import "errors"

// WindowSize is not known here.
func (s Streams) WindowSize() (rows, columns uint16, ok bool) { return 0, 0, false }

// Raw is not possible here.
func (s Streams) Raw() (restore func(), err error) {
	return func() {}, errors.New("no terminals on this system")
}
