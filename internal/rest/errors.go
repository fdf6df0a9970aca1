package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
)

// The error numbers of slurmrestd, beside those of slurm_strerror(3).
const (
	errUnspecified  = -1
	errBadQuery     = 9000
	errRejected     = 9001
	errNoJob        = 9002
	errNothingFound = 9003

	errInvalidJobID     = 2017
	errAccess           = 2002
	errNoScript         = 2009
	errNoEnvironment    = 2127
	errNoPartition      = 2000
	errInvalidNode      = 2018
	errBadReservation   = 2053
	errContact          = 1800
	msgNotAuthenticated = "Authentication failure"
)

// texts are the messages of the numbers above 9000 (observed with 22.05.8).
var texts = map[int]string{
	errBadQuery:     "Query empty or not RFC7320 compliant",
	errRejected:     "Failure during parsing",
	errNoJob:        "Jobs description entry not found, empty or not dictionary or list",
	errNothingFound: "Nothing found with query",
	errContact:      "Unable to contact slurm controller (connect failure)",
}

// spelling is how the members of an error are named. It depends on the path.
type spelling int

const (
	full      spelling = iota // description, error_number, error, source
	errno                     // error, errno
	errorCode                 // error_code, error
)

// failure is an error that is reported in the document of a response.
type failure struct {
	code        int // of HTTP; 0: 500
	number      int
	message     string // "": that of the number
	description string
	source      string
	spelling    spelling
	// list, if not empty, is the member with the empty list of what was requested.
	list string
	// before are errors that are reported before this one.
	before []format.Object
}

func (f *failure) Error() string {
	text := numberText(f.number)
	if f.message != "" {
		text = f.message
	}
	if f.description != "" {
		return f.description + ": " + text
	}
	return text
}

// errNotAuthenticated refuses a request without a valid credential.
var errNotAuthenticated = errors.New("the caller is not authenticated")

// errUnreadable refuses a request whose body is not JSON.
var errUnreadable = errors.New("the body cannot be read")

// numberText returns the message of an error number.
func numberText(n int) string {
	if text, ok := texts[n]; ok {
		return text
	}
	return slurmerr.Number(n).Text()
}

// invalid returns an error of a request that cannot be parsed.
func invalid(number int, description string, args ...any) *failure {
	return &failure{code: http.StatusBadRequest, number: number, description: fmt.Sprintf(description, args...)}
}

// refusal returns the error for a request that the cluster has refused, or that has failed.
func refusal(err error, source string, s spelling) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{source: source, spelling: s}
	switch kube.KindOf(err) {
	case kube.Forbidden:
		f.number = errAccess
		return f
	case kube.Unreachable, kube.Unavailable, kube.NoCluster:
		f.number = errContact
		return f
	}
	text := messageOf(err)
	if n, ok := slurmerr.NumberOf(text); ok {
		f.number = int(n)
		return f
	}
	f.number, f.message = errUnspecified, text
	return f
}

// failure returns the response to a request that has failed.
func (r *request) failure(err error) (body []byte, code int, kind string) {
	if errors.Is(err, errNotAuthenticated) || kube.KindOf(err) == kube.Expired {
		return []byte(msgNotAuthenticated), http.StatusUnauthorized, "text/plain"
	}
	if errors.Is(err, errUnreadable) {
		return []byte("Unable to parse query."), http.StatusBadRequest, "text/plain"
	}
	if errors.Is(err, errNotModified) {
		return nil, http.StatusNotModified, "application/json"
	}
	f := refusal(err, "", full)
	doc := r.head()
	list := make([]any, 0, len(f.before)+1)
	for _, o := range f.before {
		list = append(list, o)
	}
	list = append(list, f.object(r.modern()))
	for i := range doc {
		if doc[i].Name == "errors" {
			doc[i].Value = list
		}
	}
	if f.list != "" {
		doc = append(doc, format.Member{Name: f.list, Value: []any{}})
	}
	code = f.code
	if code == 0 {
		code = http.StatusInternalServerError
	}
	return encode(doc), code, "application/json"
}

// object returns the error as a member of the list "errors".
func (f *failure) object(modern bool) format.Object {
	text := f.message
	if text == "" {
		text = numberText(f.number)
	}
	switch {
	case modern:
	case f.spelling == errno:
		return format.Object{{Name: "error", Value: text}, {Name: "errno", Value: f.number}}
	case f.spelling == errorCode:
		return format.Object{{Name: "error_code", Value: f.number}, {Name: "error", Value: text}}
	}
	var o format.Object
	if f.description != "" || modern {
		o = append(o, format.Member{Name: "description", Value: f.description})
	}
	o = append(o, format.Member{Name: "error_number", Value: f.number}, format.Member{Name: "error", Value: text})
	if f.source != "" || modern {
		o = append(o, format.Member{Name: "source", Value: f.source})
	}
	return o
}

// head returns the first members of a document.
func (r *request) head() format.Object {
	if r.modern() {
		f := r.form()
		return format.LaterHead(&f)
	}
	return format.DocumentHead(r.version.plugin, r.version.title)
}

// document returns a document with one more member.
func (r *request) document(name string, value any) []byte {
	return encode(append(r.head(), format.Member{Name: name, Value: value}))
}

// encode returns the text of a document.
func encode(doc format.Object) []byte {
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil { // impossible for the values of documents
		return []byte("{}\n")
	}
	return append(printable.JSON(out), '\n')
}
