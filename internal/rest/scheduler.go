package rest

import (
	"cmp"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

func ping(r *request) ([]byte, error) {
	info, err := clusterInfo(r.ctx(), r.session.client)
	if err != nil {
		return nil, refusal(err, "slurm_load_ctl_conf", full)
	}
	host := cmp.Or(info.Host, r.api.host())
	return r.document("pings", []any{r.laterPing(format.Object{
		{Name: "hostname", Value: host}, {Name: "ping", Value: "UP"}, {Name: "status", Value: 0},
		{Name: "mode", Value: "primary"},
	})}), nil
}

func diag(r *request) ([]byte, error) {
	d, err := r.session.client.Statistics(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_get_statistics", full)
	}
	p := &d.Plan
	return r.document("statistics", r.laterStatistics(format.Object{
		{Name: "rpcs_by_message_type", Value: requestsByType(d.Types)},
		{Name: "rpcs_by_user", Value: requestsByUser(d.Users)},
		{Name: "parts_packed", Value: 1}, {Name: "req_time", Value: d.Time}, {Name: "req_time_start", Value: d.Since},
		{Name: "server_thread_count", Value: d.Answering}, {Name: "agent_queue_size", Value: 0},
		{Name: "agent_count", Value: 0}, {Name: "agent_thread_count", Value: 0},
		{Name: "dbd_agent_queue_size", Value: d.Unstored}, {Name: "gettimeofday_latency", Value: d.Clock},
		{Name: "schedule_cycle_max", Value: p.Max}, {Name: "schedule_cycle_last", Value: p.Last},
		{Name: "schedule_cycle_total", Value: p.Cycles}, {Name: "schedule_cycle_mean", Value: mean(p.Total, p.Cycles)},
		{Name: "schedule_cycle_mean_depth", Value: mean(p.Depth, p.Cycles)},
		{Name: "schedule_cycle_per_minute", Value: mean(60*p.Cycles, d.Time-d.Since)},
		{Name: "schedule_queue_length", Value: p.Queue}, {Name: "jobs_submitted", Value: d.Submitted},
		{Name: "jobs_started", Value: d.Started}, {Name: "jobs_completed", Value: d.Completed},
		{Name: "jobs_canceled", Value: d.Cancelled}, {Name: "jobs_failed", Value: d.Failed},
		{Name: "jobs_pending", Value: d.Pending}, {Name: "jobs_running", Value: d.Running},
		{Name: "job_states_ts", Value: d.Time}, {Name: "bf_backfilled_jobs", Value: p.BackfilledEver},
		{Name: "bf_last_backfilled_jobs", Value: p.Backfilled}, {Name: "bf_backfilled_het_jobs", Value: 0},
		{Name: "bf_cycle_counter", Value: p.Cycles}, {Name: "bf_cycle_mean", Value: mean(p.Total, p.Cycles)},
		{Name: "bf_depth_mean", Value: mean(p.Depth, p.Cycles)},
		{Name: "bf_depth_mean_try", Value: mean(p.Depth, p.Cycles)}, {Name: "bf_cycle_last", Value: p.Last},
		{Name: "bf_cycle_max", Value: p.Max}, {Name: "bf_queue_len", Value: p.Queue},
		{Name: "bf_queue_len_mean", Value: mean(p.QueueTotal, p.Cycles)}, {Name: "bf_table_size", Value: p.Table},
		{Name: "bf_table_size_mean", Value: mean(p.TableTotal, p.Cycles)},
		{Name: "bf_when_last_cycle", Value: p.LastAt}, {Name: "bf_active", Value: false},
	})), nil
}

// mean returns total/n; 0 if n is 0.
func mean(total, n int64) int64 {
	if n <= 0 {
		return 0
	}
	return total / n
}

func requestsByType(list []status.RequestStats) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, format.Object{
			{Name: "message_type", Value: s.Name}, {Name: "type_id", Value: s.ID}, {Name: "count", Value: s.Count},
			{Name: "average_time", Value: mean(s.Total, s.Count)}, {Name: "total_time", Value: s.Total},
		})
	}
	return out
}

func requestsByUser(list []status.RequestStats) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, format.Object{
			{Name: "user", Value: s.Name}, {Name: "user_id", Value: s.ID}, {Name: "count", Value: s.Count},
			{Name: "average_time", Value: mean(s.Total, s.Count)}, {Name: "total_time", Value: s.Total},
		})
	}
	return out
}

// shares serves GET shares of later versions.
func shares(r *request) ([]byte, error) {
	list, err := r.session.client.Shares(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_associations_get_shares", full)
	}
	found := []any{}
	for i := range list.Items {
		found = append(found, r.share(&list.Items[i]))
	}
	return r.document(
		"shares", format.Object{{Name: "shares", Value: found}, {Name: "total_shares", Value: len(found)}},
	), nil
}

func (r *request) share(s *status.Share) format.Object {
	name, kind, parent := s.User, []any{"USER"}, s.Account
	if s.User == "" {
		name, kind, parent = s.Account, []any{}, ""
	}
	number := func(f float64) any { return f }
	if r.atLeast(v41) {
		number = func(f float64) any { return set(f) }
	}
	return per(
		"id", 0,
		"cluster", r.session.cluster,
		"name", name,
		"parent", parent,
		"partition", "",
		"shares_normalized", set(s.NormShares),
		"shares", set(s.RawShares),
		"tres", per("run_seconds", []any{}, "group_minutes", []any{}, "usage", []any{}),
		"effective_usage", number(s.EffectvUse),
		"usage_normalized", set(s.NormUsage),
		"usage", int64(s.RawUsage),
		"fairshare", per("factor", number(s.FairShare), "level", number(s.LevelFS)),
		"type", kind,
	)
}
