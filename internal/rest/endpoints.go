package rest

// endpoint is a path of the API and what it does.
type endpoint struct {
	method, path string
	db           bool   // of openapi/dbv0.0.NN
	since        string // the first version that has it; "": all
	summary      string // for the API's description
	query        []parameter
	body         string // schema of the body; "": none
	handle       func(*request) ([]byte, error)
}

// parameter is a parameter of a query.
type parameter struct{ name, help string }

var updateTime = []parameter{{"update_time", "only if something has changed since this time, in Unix seconds"}}

// submitPath also has the form of the path of a job.
const submitPath = "/job/submit"

// endpoints returns all endpoints, in the order of the API's description.
func endpoints() []endpoint {
	return []endpoint{
		{method: "GET", path: "/ping", summary: "whether the scheduler answers", handle: ping},
		{method: "GET", path: "/diag", summary: "statistics of the scheduler", handle: diag},
		{method: "GET", path: "/licenses", summary: "licenses", handle: licenses},
		{method: "GET", path: "/jobs", summary: "all jobs of the queue", query: updateTime, handle: listJobs},
		{method: "GET", path: "/job/{id}", summary: "a job", handle: getJob},
		{method: "POST", path: "/job/{id}", summary: "change a job", body: "job_properties", handle: updateJob},
		{method: "DELETE", path: "/job/{id}", summary: "cancel a job or send it a signal",
			query: []parameter{{"signal", "name or number of the signal (default: KILL)"}}, handle: deleteJob},
		{method: "POST", path: submitPath, summary: "submit a batch job", body: "job_submission", handle: submit},
		{method: "GET", path: "/nodes", summary: "all nodes", query: updateTime, handle: listNodes},
		{method: "GET", path: "/node/{name}", summary: "a node", handle: getNode},
		{method: "GET", path: "/partitions", summary: "all partitions", query: updateTime, handle: listPartitions},
		{method: "GET", path: "/partition/{name}", summary: "a partition", query: updateTime, handle: getPartition},
		{
			method:  "GET",
			path:    "/reservations",
			summary: "all reservations",
			query:   updateTime,
			handle:  listReservations,
		},
		{
			method:  "GET",
			path:    "/reservation/{name}",
			summary: "a reservation",
			query:   updateTime,
			handle:  getReservation,
		},
		{method: "GET", path: "/shares", since: "v0.0.40", summary: "shares and usage", handle: shares},

		{
			method:  "GET",
			path:    "/jobs",
			db:      true,
			summary: "accounting records",
			query:   recordParameters,
			handle:  listRecords,
		},
		{method: "GET", path: "/job/{id}", db: true, summary: "accounting records of a job", handle: getRecord},
		{
			method:  "GET",
			path:    "/config",
			db:      true,
			summary: "everything that accounting is configured with",
			handle:  acctConfig,
		},
		{method: "GET", path: "/tres", db: true, summary: "trackable resources", handle: listTRES},
		{method: "GET", path: "/qos", db: true, summary: "all QOS", handle: listQOS},
		{method: "GET", path: "/qos/{name}", db: true, summary: "a QOS", handle: getQOS},
		{method: "GET", path: "/associations", db: true, summary: "associations", query: associationParameters,
			handle: listAssociations},
		{method: "GET", path: "/association", db: true, summary: "an association", query: associationParameters,
			handle: getAssociation},
		{method: "GET", path: "/users", db: true, summary: "all users", handle: listUsers},
		{method: "GET", path: "/user/{name}", db: true, summary: "a user", handle: getUser},
		{method: "GET", path: "/accounts", db: true, summary: "all accounts", handle: listAccounts},
		{method: "GET", path: "/account/{name}", db: true, summary: "an account", handle: getAccount},
		{method: "GET", path: "/clusters", db: true, summary: "the cluster", handle: listClusters},
		{method: "GET", path: "/cluster/{name}", db: true, summary: "the cluster", handle: getCluster},
		{method: "GET", path: "/wckeys", db: true, summary: "all wckeys", handle: listWCKeys},
		{method: "GET", path: "/diag", db: true, summary: "statistics of accounting", handle: acctDiag},

		{method: "POST", path: "/users", db: true, summary: "change users", body: "users_update",
			handle: post("users", "slurmdb_users_add", setUser)},
		{method: "DELETE", path: "/user/{name}", db: true, summary: "remove a user from all accounts",
			handle: deleteUser},
		{method: "POST", path: "/accounts", db: true, summary: "add or change accounts", body: "accounts_update",
			handle: post("accounts", "slurmdb_accounts_add", setAccount)},
		{method: "DELETE", path: "/account/{name}", db: true, summary: "delete an account", handle: deleteAccount},
		{method: "POST", path: "/associations", db: true, summary: "add or change associations",
			body: "associations_update", handle: post("associations", "slurmdb_associations_add", setAssociation)},
		{method: "DELETE", path: "/associations", db: true, summary: "delete associations of users",
			query: associationParameters, handle: deleteAssociations},
		{method: "DELETE", path: "/association", db: true, summary: "delete an association of a user",
			query: associationParameters, handle: deleteAssociation},
		{method: "POST", path: "/qos", db: true, summary: "add or change QOS", body: "qos_update",
			handle: post("qos", "slurmdb_qos_add", setQOS)},
		{method: "DELETE", path: "/qos/{name}", db: true, summary: "delete a QOS", handle: deleteQOS},
		{method: "POST", path: "/wckeys", db: true, summary: "add wckeys", body: "wckeys_update",
			handle: post("wckeys", "slurmdb_wckeys_add", setWCKey)},
		{method: "DELETE", path: "/wckey/{name}", db: true, summary: "delete a wckey", handle: deleteWCKey},
		{method: "POST", path: "/config", db: true, summary: "change several of them", body: "config_update",
			handle: setConfig},
		{method: "POST", path: "/clusters", db: true, summary: "refused", handle: fixed("a cluster registers itself")},
		{method: "DELETE", path: "/cluster/{name}", db: true, summary: "refused",
			handle: fixed("the cluster cannot be deleted")},
		{method: "POST", path: "/tres", db: true, summary: "refused",
			handle: fixed("the trackable resources are those of the nodes")},
	}
}
