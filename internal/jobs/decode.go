package jobs

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// jobList is a JobList with a faster decoder than encoding/json.
type jobList status.JobList

// Decode implements kube.Decoder. Decoding 10,000 rows dominates the time of squeue,
// so rows of the plain form that the queue API sends are decoded here. Anything else
// is left to encoding/json, which has the same result.
func (l *jobList) Decode(data []byte) error {
	d := decoder{data: data}
	list, err := d.list()
	if err == nil {
		*l = jobList(list)
		return nil
	}
	return json.Unmarshal(data, (*status.JobList)(l))
}

// errOther reports that the text does not have the plain form.
var errOther = errors.New("not the plain form")

// jobFields are the fields of a row by their JSON names.
var jobFields = func() map[string]*status.Field {
	fields := make(map[string]*status.Field, len(status.Fields))
	for i := range status.Fields {
		fields[status.Fields[i].Name] = &status.Fields[i]
	}
	return fields
}()

// decoder decodes JSON from data, starting at at.
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

// consume skips the byte c if it is the next one.
func (d *decoder) consume(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

// object decodes {...} and calls member for each key; member decodes the value.
func (d *decoder) object(member func(key []byte) error) error {
	if !d.consume('{') {
		return errOther
	}
	if d.consume('}') {
		return nil
	}
	for {
		key, plain := d.text()
		if !plain || !d.consume(':') {
			return errOther
		}
		if err := member(key); err != nil {
			return err
		}
		if d.consume('}') {
			return nil
		}
		if !d.consume(',') {
			return errOther
		}
	}
}

// list decodes a list.
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

// strings decodes an array of strings.
func (d *decoder) strings() (out []string, err error) {
	if !d.consume('[') {
		return nil, errOther
	}
	out = []string{}
	for !d.consume(']') {
		if len(out) > 0 && !d.consume(',') {
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

// rows decodes the array of rows.
func (d *decoder) rows() ([]status.Job, error) {
	if !d.consume('[') {
		return nil, errOther
	}
	rows := []status.Job{}
	if d.consume(']') {
		return rows, nil
	}
	first := d.at
	for {
		rows = append(rows, status.Job{})
		if err := d.row(rows); err != nil {
			return nil, err
		}
		if len(rows) == 1 {
			// Capacity for as many rows of this length as the data can hold.
			more := make([]status.Job, 1, 1+(len(d.data)-d.at)/max(1, d.at-first))
			more[0] = rows[0]
			rows = more
		}
		if d.consume(']') {
			return rows, nil
		}
		if !d.consume(',') {
			return nil, errOther
		}
	}
}

// row decodes the last of rows. A text that equals that of the row before shares its
// memory.
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

// share decodes a string into field. If it equals before, both share the same memory.
func (d *decoder) share(field *string, before string) error {
	start := d.at
	if text, plain := d.text(); plain && string(text) == before {
		*field = before
		return nil
	}
	d.at = start
	return d.string(field)
}

// text decodes an ASCII string without escapes; plain is false for any other.
func (d *decoder) text() (text []byte, plain bool) {
	if !d.consume('"') {
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

// string decodes any string.
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

// number decodes an integer.
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

// bool decodes true or false.
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
