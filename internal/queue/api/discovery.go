package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// discovery are the documents by which the API server and its clients learn
// what this API has.
func discovery() map[string]json.RawMessage {
	version := metav1.GroupVersionForDiscovery{GroupVersion: apiVersion(), Version: wire.QueueVersion}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     wire.QueueGroup, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}}
	resources := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: apiVersion(),
		APIResources: []metav1.APIResource{
			resource("jobs", "job", "Job", "list", "watch"),
			resource("jobs/attach", "", "Job", "create"),
			resource("jobs/pods", "", "PodList", "get"),
			resource("steps", "step", "Step", "list"),
			resource("scripts", "script", "Script", "list"),
			resource("nodes", "node", "Node", "list", "watch"),
			resource("partitions", "partition", "Partition", "list"),
			resource("reservations", "reservation", "Reservation", "list"),
			resource("licenses", "license", "License", "list"),
			resource("priorities", "priority", "Priority", "list"),
			resource("shares", "share", "Share", "list"),
			resource("statistics", "statistics", "Statistics", "list", "create"),
			resource("clusterinfo", "clusterinfo", "ClusterInfo", "list"),
			resource("operations", "operation", "Operation", "create"),
			resource("records", "record", "Record", "list"),
			resource("usage", "usage", "Usage", "list"),
			resource("events", "event", "Event", "list"),
			resource("transactions", "transaction", "Transaction", "list"),
			resource("archives", "archive", "Archive", "create"),
			resource("associations", "association", "Association", "list", "create"),
		},
	}
	info := map[string]any{"title": "Berth's queue", "version": wire.QueueVersion}
	return map[string]json.RawMessage{
		"/apis":                        document(&groups),
		"/apis/" + wire.QueueGroup:     document(&group),
		wire.QueueRoot:                 document(&resources),
		"/openapi/v2":                  document(map[string]any{"swagger": "2.0", "info": info, "paths": map[string]any{}}),
		"/openapi/v3":                  document(map[string]any{"paths": map[string]any{}}),
		"/openapi/v3" + wire.QueueRoot: document(map[string]any{"openapi": "3.0.0", "info": info, "paths": map[string]any{}}),
		"/version":                     document(map[string]any{"major": "1", "minor": "0"}),
	}
}

func resource(plural, singular, kind string, verbs ...string) metav1.APIResource {
	return metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, Verbs: verbs}
}

func document(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // constants
	}
	return b
}
