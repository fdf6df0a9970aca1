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

	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// asked reads what a GET wants; false: it was refused.
func asked(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := decode(r.URL.Query().Get("q"), into); err != nil {
		response.Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return false
	}
	return true
}

// events answers GET events?q=QUERY; with PrivateData=events operators alone
// see any.
func (s *Server) events(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	q := &status.EventQuery{}
	if !asked(w, r, q) {
		return
	}
	out := &status.EventList{Kind: "EventList", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Time: s.Now().Unix(), Cluster: s.cluster(), Items: []status.AcctEvent{}}
	if s.all(c, authz.Records, authz.Outages) {
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

// transactions answers GET transactions?q=QUERY.
func (s *Server) transactions(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	q := &status.TransactionQuery{}
	if !asked(w, r, q) {
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

// archive answers POST archives: administrators take old records out of the
// database, or bring them back.
func (s *Server) archive(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var in status.ArchiveRequest
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<16))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		response.Error(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if !s.all(c, authz.Records, authz.Archive) {
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
	case errors.Is(err, acct.ErrBadArchive):
		response.Error(w, r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	case err != nil:
		s.fail(w, r, err)
	default:
		response.JSON(w, r, struct{}{})
	}
}
