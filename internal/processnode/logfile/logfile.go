// Package logfile stores the output of a container in the log format of the container
// runtime interface (time, stream, F or P for a full or partial line, text), so that it can
// be selected by line or age and followed.
package logfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// maxSize is the size at which a log is rotated; one old file is kept.
const maxSize = 10 << 20

// Old is the suffix of the rotated log.
const Old = ".1"

// Log is the log of a container. It is safe for concurrent use.
type Log struct {
	path string

	mu        sync.Mutex
	file      *os.File // nil: closed
	size      int64
	rotations int           // number of rotations so far
	changed   chan struct{} // closed at the next write or Close
	ended     bool
}

// Create creates an empty log.
func Create(path string) (*Log, error) {
	if err := os.Remove(path + Old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, err
	}
	return &Log{path: path, file: f, changed: make(chan struct{})}, nil
}

// Ended opens the log of a container that no longer runs.
func Ended(path string) *Log { return &Log{path: path, ended: true} }

// Stream returns a writer to the log as "stdout" or "stderr". Every Write is complete
// in the log, and visible to readers, when it returns.
func (l *Log) Stream(name string) *Stream { return &Stream{log: l, name: name} }

// Stream is an io.Writer.
type Stream struct {
	log  *Log
	name string
}

func (s *Stream) Write(p []byte) (int, error) {
	var b bytes.Buffer
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for rest := p; len(rest) > 0; {
		line, after, full := bytes.Cut(rest, []byte{'\n'})
		tag := " F "
		if !full {
			tag = " P "
		}
		b.WriteString(now + " " + s.name + tag)
		b.Write(line)
		b.WriteByte('\n')
		rest = after
	}
	return len(p), s.log.write(b.Bytes())
}

func (l *Log) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fs.ErrClosed
	}
	if l.size > maxSize {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	close(l.changed)
	l.changed = make(chan struct{})
	return err
}

// rotate renames the file. It is called with mu held.
func (l *Log) rotate() error {
	if err := os.Rename(l.path, l.path+Old); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	_ = l.file.Close()
	l.file, l.size = f, 0
	l.rotations++
	return nil
}

// Close ends the log. Readers that follow it return after its last entry.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.ended = nil, true
	close(l.changed)
	return err
}
