// Package papers keeps the identity of a cluster's member in its data folder: a passport, the
// member's certificate and key, and the certificate of the authority that signs all members.
//
//	DATA/cluster/  member.json   name, id, address, ids of journal and cluster, first members
//	               node.pem      the member's certificate, which names cluster and member
//	               node.key      the key of node.pem
//	               ca.pem        the authority of the cluster: a member trusts no other
//	               ca.key        the key of ca.pem, in the folder that began the cluster
//	               *.copy        of the others, made at a start; see disk.Twice
//
//	Invitations.Invite ─► Token ─► Request, Apply ══► Invitations.Redeem, Admit ══► Accept
//
// Contract: a folder with member.json has all other files but ca.key. Only the node's user can read
// them. Write replaces no file. A member without ca.key can admit nobody and is whole otherwise: an
// operator may copy ca.key to another voter, which can admit then, or remove it from all. A Token
// is good once, for an hour, for one name and address, and only while the process of its issuer
// lives. A new member shows its Token to nobody but the issuer. The number of Invitations is
// bounded, and so are the attempts of machines without a Token.
//
// Read papers.go, founders.go; token.go, invitations.go, join.go.
package papers
