// Package limit keeps one client or user of the login node from blocking the others.
// Connections bounds connections that have not logged in, and penalizes addresses whose
// connections fail. Quotas bounds the connections and channels of a user. Rates bounds
// the rates at which a user logs in and starts sessions.
package limit
