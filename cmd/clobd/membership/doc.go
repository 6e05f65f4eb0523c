// Package membership makes the folders of a cluster's members.
//
//	FOLDER/cluster.part/  home/*     the journal, its mark and the secrets of a further member
//	                      *.pem, …   the papers
//
// Contract: everything is made in cluster.part first. Then the first folder's journal becomes a
// member's, in one write: this is when the cluster begins. Then each part takes its place, the
// first member's last. Whatever ends this, a full disk or a crash, Run can be called again with the
// same founders. Before the one write it starts over, because nothing has happened yet, and then it
// goes on. Nothing but cluster.part is ever removed.
//
// A Joining makes its folder in the same way, with an empty journal and what the member gives that
// has invited it; its key comes first, so that who has lost the answer asks again for the same. A
// Rescue makes the journal of one member that of another cluster, in one write; the old papers get
// another name.
//
// Read found.go, join.go, rescue.go.
package membership
