// Package limit prevents one client or user of the login node from blocking the others.
// Connections limits connections that have not logged in, and penalizes addresses whose
// connections fail. Quotas limits the connections and channels of a user. Rates limits
// the rates at which a user logs in and starts sessions.
package limit
