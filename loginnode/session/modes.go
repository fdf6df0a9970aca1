package session

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Opcodes of terminal modes that are not flags (RFC 4254, 8).
const (
	modeEnd        = 0
	modeInputBaud  = 128
	modeOutputBaud = 129
	modeReserved   = 160 // from here on even the length of the arguments is undefined
)

// controlChars are the opcodes of special characters, and their place in
// c_cc on Linux.
var controlChars = map[byte]int{
	1:  unix.VINTR,
	2:  unix.VQUIT,
	3:  unix.VERASE,
	4:  unix.VKILL,
	5:  unix.VEOF,
	6:  unix.VEOL,
	7:  unix.VEOL2,
	8:  unix.VSTART,
	9:  unix.VSTOP,
	10: unix.VSUSP,
	12: unix.VREPRINT,
	13: unix.VWERASE,
	14: unix.VLNEXT,
	18: unix.VDISCARD,
}

// flag is a bit of one of the four words of a termios.
type flag struct {
	word func(*unix.Termios) *uint32
	bit  uint32
}

func iflag(t *unix.Termios) *uint32 { return &t.Iflag }
func oflag(t *unix.Termios) *uint32 { return &t.Oflag }
func cflag(t *unix.Termios) *uint32 { return &t.Cflag }
func lflag(t *unix.Termios) *uint32 { return &t.Lflag }

var flags = map[byte]flag{
	30: {iflag, unix.IGNPAR},
	31: {iflag, unix.PARMRK},
	32: {iflag, unix.INPCK},
	33: {iflag, unix.ISTRIP},
	34: {iflag, unix.INLCR},
	35: {iflag, unix.IGNCR},
	36: {iflag, unix.ICRNL},
	37: {iflag, unix.IUCLC},
	38: {
		iflag,
		unix.IXON,
	},
	39: {iflag, unix.IXANY},
	40: {iflag, unix.IXOFF},
	41: {iflag, unix.IMAXBEL},
	42: {iflag, unix.IUTF8},
	50: {lflag, unix.ISIG},
	51: {lflag, unix.ICANON},
	52: {lflag, unix.XCASE},
	53: {lflag, unix.ECHO},
	54: {lflag, unix.ECHOE},
	55: {lflag, unix.ECHOK},
	56: {lflag, unix.ECHONL},
	57: {lflag, unix.NOFLSH},
	58: {
		lflag,
		unix.TOSTOP,
	},
	59: {lflag, unix.IEXTEN},
	60: {lflag, unix.ECHOCTL},
	61: {lflag, unix.ECHOKE},
	62: {lflag, unix.PENDIN},
	70: {oflag, unix.OPOST},
	71: {oflag, unix.OLCUC},
	72: {oflag, unix.ONLCR},
	73: {oflag, unix.OCRNL},
	74: {oflag, unix.ONOCR},
	75: {oflag, unix.ONLRET},
	92: {cflag, unix.PARENB},
	93: {cflag, unix.PARODD},
}

// setModes applies the encoded modes of a pty-req to a terminal. It skips unknown
// opcodes, as RFC 4254 requires, and stops at the end of the bytes.
func setModes(t *unix.Termios, encoded []byte) {
	for len(encoded) >= 5 {
		op, value := encoded[0], binary.BigEndian.Uint32(encoded[1:5])
		if op == modeEnd || op >= modeReserved {
			return
		}
		encoded = encoded[5:]
		if i, ok := controlChars[op]; ok {
			t.Cc[i] = byte(value) // 255 is "none" on both sides but for the value
			if value == 255 {
				t.Cc[i] = 0
			}
			continue
		}
		if f, ok := flags[op]; ok {
			if w := f.word(t); value != 0 {
				*w |= f.bit
			} else {
				*w &^= f.bit
			}
			continue
		}
		setWide(t, op, value)
	}
}

// setWide sets modes that are fields of several bits.
func setWide(t *unix.Termios, op byte, value uint32) {
	switch op {
	case 90, 91: // CS7, CS8
		if value != 0 {
			t.Cflag = t.Cflag&^unix.CSIZE | map[byte]uint32{90: unix.CS7, 91: unix.CS8}[op]
		}
	case modeInputBaud, modeOutputBaud:
		if b, ok := bauds[value]; ok {
			t.Cflag = t.Cflag&^unix.CBAUD | b
		}
	}
}

var bauds = map[uint32]uint32{
	1200: unix.B1200, 2400: unix.B2400, 4800: unix.B4800, 9600: unix.B9600, 19200: unix.B19200,
	38400: unix.B38400, 57600: unix.B57600, 115200: unix.B115200,
}

// applyModes sets the modes of the terminal's slave.
func (t *terminal) applyModes(encoded string) error {
	return t.control(func(fd int) error {
		tio, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		setModes(tio, []byte(encoded))
		return unix.IoctlSetTermios(fd, unix.TCSETS, tio)
	})
}
