// Package papers keeps what a data folder needs to be that of a cluster's member: who it is, its
// certificate with its key, and the authority that has signed the certificates of all members.
//
//	DATA/cluster/  member.json   name, id, address, ids of journal and cluster, members it had
//	               node.pem      its certificate, which names cluster and member
//	               node.key      the key of that
//	               ca.pem        the authority of the cluster: nobody else is trusted
//	               ca.key        the key of that, in the folder that began the cluster
//
//	Invitations.Invite ─► Token ─► Request, Apply ══► Invitations.Redeem, Admit ══► Accept
//
// Contract: a folder with member.json has all the others but ca.key. All are for the node's user
// alone. Write replaces nothing. Without ca.key nobody can be admitted, and all else goes on: an
// operator may copy it to another voter, who then lets members in, too, or take it away from all. A
// Token is good once, for an hour, for one name and address, and as long as the process lives that
// has made it. It is told to nobody who has not proved to be the member that has made it.
// Invitations are bounded, and so is what machines can do that have none.
//
// Read papers.go, founders.go; token.go, invitations.go, join.go.
package papers
