package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// parseQuery parses the query of a GET. It returns false if it has refused the
// request.
func parseQuery(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := decode(r.URL.Query().Get("q"), into); err != nil {
		response.Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return false
	}
	return true
}

// events serves GET events?q=QUERY. With PrivateData=events only operators see
// events.
func (s *Server) events(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	q := &status.EventQuery{}
	if !parseQuery(w, r, q) {
		return
	}
	out := &status.EventList{Kind: "EventList", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Time: s.Now().Unix(), Cluster: s.cluster(), Items: []status.AcctEvent{}}
	if s.mayAll(c, authz.Records, authz.Outages) {
		err := s.search(r.Context(), func(ctx context.Context) error {
			list, err := s.Recorder.Events(ctx, q)
			out.Items = append(out.Items, list...)
			return err
		})
		if err != nil {
			s.fail(w, r, err)
			return
		}
	}
	response.JSON(w, r, out)
}

// transactions serves GET transactions?q=QUERY.
func (s *Server) transactions(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	q := &status.TransactionQuery{}
	if !parseQuery(w, r, q) {
		return
	}
	out := &status.TransactionList{Kind: "TransactionList", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Cluster: s.cluster(), Items: []status.Transaction{}}
	err := s.search(r.Context(), func(ctx context.Context) error {
		list, err := s.Recorder.Transactions(ctx, q)
		out.Items = append(out.Items, list...)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	response.JSON(w, r, out)
}

// archive serves POST archives, with which administrators archive old records or
// load archived ones.
func (s *Server) archive(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var in status.ArchiveRequest
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<16))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		response.Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if !s.mayAll(c, authz.Records, authz.Archive) {
		response.Error(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, errDenied)
		return
	}
	var err error
	if in.Load != "" {
		_, err = s.Recorder.LoadArchive(r.Context(), in.Load)
	} else {
		var before time.Time
		if in.Before != 0 {
			before = time.Unix(in.Before, 0)
		}
		_, err = s.Recorder.Archive(r.Context(), before)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		response.Error(w, r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "No such file or directory")
	case errors.Is(err, store.ErrBadArchive):
		response.Error(w, r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	case err != nil:
		s.fail(w, r, err)
	default:
		response.JSON(w, r, struct{}{})
	}
}
