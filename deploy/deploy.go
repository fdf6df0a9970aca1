// Package deploy holds the manifests that installing Berth means: our resource
// definitions (made by controller-gen from the types in api/) and those of
// JobSet and the PodGroup, copied from their modules.
package deploy

import "embed"

// CRDs is every CustomResourceDefinition, under crds/ and crds/third_party/,
// one object a file.
//
//go:embed crds/*.yaml crds/third_party/*.yaml
var CRDs embed.FS

// JobSetWebhooks is JobSet's webhook configurations, several objects a file,
// with the service reference of its own deployment.
//
//go:embed webhooks/third_party/jobset.yaml
var JobSetWebhooks []byte

// RBAC is the cluster roles of the scheduler and of users, several objects a
// file.
//
//go:embed rbac/*.yaml
var RBAC embed.FS

// Admission is the admission policies that go with the resource definitions.
//
//go:embed admission/*.yaml
var Admission embed.FS
