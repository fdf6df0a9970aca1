package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// discoveryDocuments returns the documents in which the API server and its clients
// find the resources of this API, by path.
func discoveryDocuments() map[string]json.RawMessage {
	version := metav1.GroupVersionForDiscovery{GroupVersion: apiVersion, Version: wire.QueueVersion}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     wire.QueueGroup, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	groups := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{group},
	}
	resources := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: apiVersion,
		APIResources: []metav1.APIResource{
			apiResource("jobs", "job", "Job", "list", "watch"),
			apiResource("jobs/attach", "", "Job", "create"),
			apiResource("jobs/pods", "", "PodList", "get"),
			apiResource("steps", "step", "Step", "list"),
			apiResource("scripts", "script", "Script", "list"),
			apiResource("nodes", "node", "Node", "list", "watch"),
			apiResource("partitions", "partition", "Partition", "list"),
			apiResource("topology", "topology", "Topology", "list"),
			apiResource("reservations", "reservation", "Reservation", "list"),
			apiResource("licenses", "license", "License", "list"),
			apiResource("priorities", "priority", "Priority", "list"),
			apiResource("shares", "share", "Share", "list"),
			apiResource("statistics", "statistics", "Statistics", "list", "create"),
			apiResource("clusterinfo", "clusterinfo", "ClusterInfo", "list"),
			apiResource("operations", "operation", "Operation", "create"),
			apiResource("tokens", "token", "Token", "create"),
			apiResource("records", "record", "Record", "list"),
			apiResource("usage", "usage", "Usage", "list"),
			apiResource("events", "event", "Event", "list"),
			apiResource("transactions", "transaction", "Transaction", "list"),
			apiResource("archives", "archive", "Archive", "create"),
			apiResource("associations", "association", "Association", "list", "create"),
		},
	}
	none := map[string]any{}
	info := map[string]any{"title": "Berth's queue", "version": wire.QueueVersion}
	return map[string]json.RawMessage{
		"/apis":                        document(&groups),
		"/apis/" + wire.QueueGroup:     document(&group),
		wire.QueueRoot:                 document(&resources),
		"/openapi/v2":                  document(map[string]any{"swagger": "2.0", "info": info, "paths": none}),
		"/openapi/v3":                  document(map[string]any{"paths": none}),
		"/openapi/v3" + wire.QueueRoot: document(map[string]any{"openapi": "3.0.0", "info": info, "paths": none}),
		"/version":                     document(map[string]any{"major": "1", "minor": "0"}),
	}
}

func apiResource(plural, singular, kind string, verbs ...string) metav1.APIResource {
	return metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, Verbs: verbs}
}

func document(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the documents are constants
	}
	return b
}
