// Package papers keeps what a data folder needs to be that of a cluster's member: who it is, its
// certificate with its key, and the authority that has signed the certificates of all members.
//
//	DATA/cluster/  member.json   name, id and address, the journal's id, the members it was told of
//	               node.pem      its certificate, which names cluster and member
//	               node.key      the key of that
//	               ca.pem        the authority of the cluster: nobody else is trusted
//	               ca.key        the key of that, in the folder that began the cluster
//
// Contract: a folder with member.json has all the others but ca.key. All are for the node's user
// alone. Write replaces nothing. Without ca.key nobody can be admitted, and all else goes on.
//
// Read papers.go, founders.go.
package papers
