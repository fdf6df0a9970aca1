package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
)

// probes has a request for each row of the table of rights, by its object and action.
var probes = map[string]probe{
	"job create": func(t *testing.T, w *walk, c *party) answer {
		return c.send(t, http.MethodPost, w.jobs, submission(t, 10))
	},
	"job read": func(t *testing.T, w *walk, c *party) answer {
		id, _ := w.job(t)
		a := c.send(t, http.MethodGet, queueRoot+"/jobs?id="+id, nil)
		a.hidden = !strings.Contains(a.text, `"flood"`)
		return a
	},
	"job script": func(t *testing.T, w *walk, c *party) answer {
		id, path := w.job(t)
		a := c.send(t, http.MethodGet, queueRoot+"/scripts?id="+id, nil)
		// The BatchJob contains the script too.
		if b := c.send(t, http.MethodGet, path, nil); a.refused() && b.code == http.StatusOK && strings.Contains(b.text, `"script"`) {
			return b
		}
		return a
	},
	"job pods": func(t *testing.T, w *walk, c *party) answer {
		id, _ := w.job(t)
		return c.send(t, http.MethodGet, queueRoot+"/jobs/"+id+"/pods", nil)
	},
	"job events": func(t *testing.T, w *walk, c *party) answer {
		id, _ := w.job(t)
		return c.stream(t, queueRoot+"/jobs/"+id+"/attach")
	},
	"job attach": func(t *testing.T, w *walk, c *party) answer {
		return c.stream(t, queueRoot+"/jobs/"+w.running(t)+"/attach", "Connection", "Upgrade", "Upgrade", wire.AttachProtocol)
	},
	"job cancel": verb("cancel", nil), "job signal": verb("signal", object{"signal": 10}),
	"job hold": verb("hold", nil), "job uhold": verb("uhold", nil), "job release": verb("release", nil),
	"job free": func(t *testing.T, w *walk, c *party) answer {
		id, _ := w.job(t)
		root := &party{caller: w.admin}
		root.operate(t, object{"verb": "release", "jobs": []string{id}})
		root.operate(t, object{"verb": "hold", "jobs": []string{id}})
		return c.operate(t, object{"verb": "release", "jobs": []string{id}})
	},
	"job suspend": verb("suspend", nil), "job resume": verb("resume", nil),
	"job requeue": verb("requeue", nil), "job requeuehold": verb("requeuehold", nil), "job top": verb("top", nil),
	"job notify": verb("notify", object{"message": "hello"}), "job complete": verb("complete", nil),
	"job update": verb("update", object{"set": object{"JobName": "flood"}}),
	"job delete": func(t *testing.T, w *walk, c *party) answer {
		_, path := w.job(t)
		return c.send(t, http.MethodDelete, path, nil)
	},
	"job touch": func(t *testing.T, w *walk, c *party) answer {
		_, path := w.job(t)
		return c.send(t, http.MethodPatch, path, object{"metadata": object{"annotations": object{"example.org/note": c.name}}})
	},

	"step read": func(t *testing.T, w *walk, c *party) answer {
		id := w.running(t)
		a := c.send(t, http.MethodGet, queueRoot+"/steps?id="+id, nil)
		a.hidden = !strings.Contains(a.text, `"`+id+`.0"`)
		return a
	},
	"step signal": step(object{"verb": "signal", "signal": 18}),
	"step update": step(object{"verb": "update", "entity": "step", "set": object{"TimeLimit": "60"}}),
	"step cancel": step(object{"verb": "cancel"}),

	"node read":          get("/nodes"),
	"node update":        entity("node", "update", "n1", object{"Weight": "1"}, nil),
	"node reboot":        entity("node", "reboot", "n1", object{"NextState": "RESUME"}, nil),
	"partition read":     get("/partitions"),
	"partition create":   entity("partition", "create", "pN", object{"Nodes": "n1"}, nil),
	"partition update":   entity("partition", "update", "pN", object{"MaxTime": "60"}, object{"Nodes": "n1"}),
	"partition delete":   entity("partition", "delete", "pN", nil, object{"Nodes": "n1"}),
	"reservation read":   get("/reservations"),
	"reservation create": entity("reservation", "create", "rN", reservation, nil),
	"reservation update": entity("reservation", "update", "rN", object{"Duration": "20"}, reservation),
	"reservation delete": entity("reservation", "delete", "rN", nil, reservation),

	"account read":   get("/associations"),
	"account update": change(func(*walk) object { return object{"account": object{"name": "new"}} }),
	"user read":      get("/associations"),
	"user update": func(t *testing.T, w *walk, c *party) answer {
		return change(func(w *walk) object { return userOf(t, w, object{"accounts": []string{"chemistry"}}) })(t, w, c)
	},
	"user level": func(t *testing.T, w *walk, c *party) answer {
		return change(func(w *walk) object { return userOf(t, w, object{"adminLevel": "Operator"}) })(t, w, c)
	},
	"token create": func(t *testing.T, w *walk, c *party) answer {
		return c.send(t, http.MethodPost, queueRoot+"/tokens", object{"user": w.shared.alice.name, "lifeSeconds": 600})
	},
	"qos read":   get("/associations"),
	"qos update": change(func(*walk) object { return object{"qos": object{"name": "new"}} }),

	"cluster read":       get("/clusterinfo"),
	"cluster statistics": get("/statistics"),
	"cluster reset": func(t *testing.T, _ *walk, c *party) answer {
		return c.send(t, http.MethodPost, queueRoot+"/statistics", nil)
	},
	"cluster shares":       get("/shares"),
	"records read":         get("/records?q=" + url.QueryEscape(`{"jobs":["1"]}`)),
	"records usage":        get("/usage?q=" + url.QueryEscape(`{"start":1,"end":2}`)),
	"records outages":      get("/events?q=" + url.QueryEscape(`{"start":1,"end":2}`)),
	"records transactions": get("/transactions?q=" + url.QueryEscape(`{"start":1,"end":2}`)),
	"records archive": func(t *testing.T, _ *walk, c *party) answer {
		return c.send(t, http.MethodPost, queueRoot+"/archives", object{"before": 1})
	},
}

// reservation is in the far future, so that it delays no job.
var reservation = object{"StartTime": "2090-01-01T00:00:00", "Duration": "10", "Nodes": "n4", "Users": "root"}
