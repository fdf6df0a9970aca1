package jobs

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// jobList is a JobList as kube.Client decodes it.
type jobList status.JobList

// Decode implements kube.Decoder. A list of 10,000 rows is what makes squeue
// slow, so rows of the plain form that the queue API sends are read here;
// anything else is left to encoding/json, which gives the same result.
func (l *jobList) Decode(data []byte) error {
	d := decoder{data: data}
	list, err := d.list()
	if err == nil {
		*l = jobList(list)
		return nil
	}
	return json.Unmarshal(data, (*status.JobList)(l))
}

// errOther says that the text is not of the plain form.
var errOther = errors.New("not the plain form")

// jobFields are the fields of a row by their JSON names.
var jobFields = func() map[string]*status.Field {
	fields := make(map[string]*status.Field, len(status.Fields))
	for i := range status.Fields {
		fields[status.Fields[i].Name] = &status.Fields[i]
	}
	return fields
}()

// decoder reads a JobList from the front of data.
type decoder struct {
	data []byte
	at   int
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *decoder) peek() byte {
	for d.at < len(d.data) {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return c
		}
	}
	return 0
}

// take skips the byte c, if it is next.
func (d *decoder) take(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

// object reads {...} and calls member for each key; member reads the value.
func (d *decoder) object(member func(key []byte) error) error {
	if !d.take('{') {
		return errOther
	}
	if d.take('}') {
		return nil
	}
	for {
		key, plain := d.text()
		if !plain || !d.take(':') {
			return errOther
		}
		if err := member(key); err != nil {
			return err
		}
		if d.take('}') {
			return nil
		}
		if !d.take(',') {
			return errOther
		}
	}
}

// list reads the whole answer.
func (d *decoder) list() (list status.JobList, err error) {
	err = d.object(func(key []byte) error {
		switch string(key) {
		case "kind":
			return d.string(&list.Kind)
		case "apiVersion":
			return d.string(&list.APIVersion)
		case "time":
			list.Time, err = d.number()
			return err
		case "unknownUsers":
			list.UnknownUsers, err = d.strings()
			return err
		case "items":
			if list.Items != nil {
				return errOther
			}
			list.Items, err = d.rows()
			return err
		}
		return errOther
	})
	if d.peek(); err == nil && d.at < len(d.data) {
		err = errOther
	}
	return list, err
}

// strings reads an array of strings.
func (d *decoder) strings() (out []string, err error) {
	if !d.take('[') {
		return nil, errOther
	}
	out = []string{}
	for !d.take(']') {
		if len(out) > 0 && !d.take(',') {
			return nil, errOther
		}
		var s string
		if err := d.string(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// rows reads the array of rows.
func (d *decoder) rows() ([]status.Job, error) {
	if !d.take('[') {
		return nil, errOther
	}
	rows := []status.Job{}
	if d.take(']') {
		return rows, nil
	}
	first := d.at
	for {
		rows = append(rows, status.Job{})
		if err := d.row(rows); err != nil {
			return nil, err
		}
		if len(rows) == 1 {
			// Room for as many rows of this length as can still come.
			more := make([]status.Job, 1, 1+(len(d.data)-d.at)/max(1, d.at-first))
			more[0] = rows[0]
			rows = more
		}
		if d.take(']') {
			return rows, nil
		}
		if !d.take(',') {
			return nil, errOther
		}
	}
}

// row reads the last of rows. A text equal to the one before is shared with it.
func (d *decoder) row(rows []status.Job) error {
	at := len(rows) - 1
	row := &rows[at]
	before := row
	if at > 0 {
		before = &rows[at-1]
	}
	return d.object(func(key []byte) error {
		f, ok := jobFields[string(key)]
		switch {
		case !ok:
			return errOther
		case f.Text != nil:
			return d.share(f.Text(row), *f.Text(before))
		case f.Flag != nil:
			v, err := d.bool()
			*f.Flag(row) = v
			return err
		}
		n, err := d.number()
		switch {
		case err != nil:
			return errOther
		case f.Large != nil:
			*f.Large(row) = n
		case n != int64(int32(n)):
			return errOther
		default:
			*f.Small(row) = int32(n)
		}
		return nil
	})
}

func (d *decoder) share(field *string, before string) error {
	start := d.at
	if text, plain := d.text(); plain && string(text) == before {
		*field = before
		return nil
	}
	d.at = start
	return d.string(field)
}

// text reads a string without escapes; plain is false for any other.
func (d *decoder) text() (text []byte, plain bool) {
	if !d.take('"') {
		return nil, false
	}
	start := d.at
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; {
		case c == '"':
			d.at++
			return d.data[start : d.at-1], true
		case c == '\\', c < ' ', c >= 0x80:
			return nil, false
		}
	}
	return nil, false
}

// string reads any string.
func (d *decoder) string(to *string) error {
	if d.peek() != '"' {
		return errOther
	}
	start := d.at
	if text, plain := d.text(); plain {
		*to = string(text)
		return nil
	}
	end := start + 1
	for end < len(d.data) && d.data[end] != '"' {
		if d.data[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(d.data) {
		return errOther
	}
	d.at = end + 1
	return json.Unmarshal(d.data[start:d.at], to)
}

// number reads a whole number.
func (d *decoder) number() (int64, error) {
	d.peek()
	start := d.at
	for d.at < len(d.data) && (d.data[d.at] == '-' || d.data[d.at] >= '0' && d.data[d.at] <= '9') {
		d.at++
	}
	text := d.data[start:d.at]
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || len(text) > 1 && (text[0] == '0' || text[0] == '-' && text[1] == '0') {
		return 0, errOther
	}
	return n, nil
}

func (d *decoder) bool() (bool, error) {
	for _, v := range []bool{true, false} {
		word := strconv.FormatBool(v)
		if d.peek(); strings.HasPrefix(string(d.data[d.at:min(len(d.data), d.at+5)]), word) {
			d.at += len(word)
			return v, nil
		}
	}
	return false, errOther
}
