package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
)

// describe serves the description of the API (OpenAPI 3.0.3).
func (a *API) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(description30(a.opts.Plugins))) // the client is gone
}

// description30 returns the description of the plugins; none: all.
func description30(plugins []string) format.Object {
	paths := format.Object{}
	for i := range versions {
		v := &versions[i]
		if len(plugins) > 0 && !slices.Contains(plugins, v.plugin) {
			continue
		}
		paths = append(paths, v.paths()...)
	}
	key := func(name string) format.Object { return per("type", "apiKey", "name", name, "in", "header") }
	return per(
		"openapi", "3.0.3",
		"info", per("title", "Slurm REST API", "description", "Slurm's REST API, served by Berth.", "version", "0.0.38",
			"license", per("name", "Apache 2.0", "url", "https://www.apache.org/licenses/LICENSE-2.0.html")),
		"tags", []any{per("name", "slurm"), per("name", "slurmdb")},
		"paths", paths,
		"components", per(
			"securitySchemes", per("user", key(headerUser), "token", key(headerToken),
				"bearer", per("type", "http", "scheme", "bearer")),
			"schemas", append(accountingSchemas(), per(
				"job_submission", submissionSchema("job_properties"), "job_properties", propertiesSchema(properties),
				"later_job_submission", submissionSchema("later_job_properties"),
				"later_job_properties", propertiesSchema(propertiesOf(true)),
				"errors", per("type", "array", "items", per("type", "object")),
				"document", per("type", "object", "properties", per("meta", per("type", "object"),
					"errors", per("$ref", "#/components/schemas/errors"))),
			)...),
		),
		"security", []any{per("user", []any{}, "token", []any{}), per("bearer", []any{})},
	)
}

// paths returns the descriptions of the version's paths.
func (v *version) paths() format.Object {
	var out format.Object
	db := strings.HasPrefix(v.root, "/slurmdb/")
	for _, e := range endpoints() {
		if e.db != db || e.since != "" && v.parser < e.since {
			continue
		}
		operation := v.operation(&e)
		method := strings.ToLower(e.method)
		at := slices.IndexFunc(out, func(m format.Member) bool { return m.Name == v.root+e.path })
		if at < 0 {
			out = append(out, format.Member{Name: v.root + e.path, Value: per(method, operation)})
			continue
		}
		if o, ok := out[at].Value.(format.Object); ok {
			out[at].Value = append(o, format.Member{Name: method, Value: operation})
		}
	}
	return out
}

func (v *version) operation(e *endpoint) format.Object {
	tag := "slurm"
	if e.db {
		tag = "slurmdb"
	}
	parameters := []any{}
	if _, after, ok := strings.Cut(e.path, "{"); ok {
		parameters = append(parameters, per("name", strings.TrimSuffix(after, "}"), "in", "path", "required", true,
			"schema", per("type", "string")))
	}
	for _, p := range e.query {
		parameters = append(parameters, per("name", p.name, "in", "query", "description", p.help,
			"schema", per("type", "string")))
	}
	name := strings.NewReplacer("/", "_", ".", "_", "{", "", "}", "").Replace(v.root[1:] + e.path)
	o := per("tags", []any{tag}, "operationId", strings.ToLower(e.method)+"_"+name, "summary", e.summary,
		"parameters", parameters)
	if e.body != "" {
		schema := e.body
		if v.parser != "" {
			schema = "later_" + schema
		}
		content := per("application/json", per("schema", per("$ref", "#/components/schemas/"+schema)))
		o = append(o, format.Member{Name: "requestBody", Value: per("required", true, "content", content)})
	}
	content := per("application/json", per("schema", per("$ref", "#/components/schemas/document")))
	return append(o, format.Member{Name: "responses", Value: per(
		"200", per("description", "the document", "content", content),
		"default", per("description", "the document with the errors", "content", content),
	)})
}

// accountingSchemas returns the schemas of the bodies that change accounting. They are the
// same in all versions.
func accountingSchemas() format.Object {
	var out format.Object
	for _, prefix := range []string{"", "later_"} {
		out = append(out, per(
			prefix+"users_update", accountingSchema("users", "name"),
			prefix+"accounts_update", accountingSchema("accounts", "name"),
			prefix+"associations_update", accountingSchema("associations", "account"),
			prefix+"qos_update", accountingSchema("qos", "name"),
			prefix+"wckeys_update", accountingSchema("wckeys", "name", "user"),
			prefix+"config_update", per("type", "object", "additionalProperties", true),
		)...)
	}
	return out
}

func submissionSchema(properties string) format.Object {
	job := per("$ref", "#/components/schemas/"+properties)
	return per("type", "object", "required", []any{"script"}, "properties", per(
		"script", per("type", "string"), "job", job, "jobs", per("type", "array", "items", job),
	))
}

func propertiesSchema(list []property) format.Object {
	var o format.Object
	for _, p := range list {
		schema := per("type", p.kind, "description", p.help)
		if p.kind == "array" {
			item := "string"
			if p.name == "nodes" {
				item = "integer"
			}
			schema = append(schema, format.Member{Name: "items", Value: per("type", item)})
		}
		o = append(o, format.Member{Name: p.name, Value: schema})
	}
	o = append(o, per(
		propertyArguments, per("type", "array", "description", "name and arguments of the script",
			"items", per("type", "string")),
		propertyCPUBinding, per("type", "string", "description", "binding of tasks to CPUs"),
		propertyDirectory, per("type", "string", "description", "directory in which the job runs"),
		propertyEnvironment, per("type", "object", "description", "environment of the job",
			"additionalProperties", per("type", "string")),
	)...)
	return per("type", "object", "properties", o)
}
