// Package membership makes the data folders of a cluster's members.
//
//	DATA/cluster.part/  home/*     the journal, its mark and the secrets of a further member
//	                    *.pem, …   the papers
//	        │ rename, last of all
//	        ▼
//	DATA/cluster/
//
// A Founding makes a cluster of one folder that has a journal. First it makes everything in parts,
// one for each member. Then one write makes the first folder's journal that of a member: in this
// moment the cluster begins. Then each part is moved to its place, the first member's last. After a
// crash or a full disk the caller repeats Run with the same founders: before the one write Run
// starts over, after it Run goes on. Run removes nothing but cluster.part.
//
// A Joining makes the folder of one new member, with an empty journal and the Admission of a member
// that runs. It makes the key first, so that a repeated Run asks for the same key. A Rescue turns
// the journal of one member into that of a new cluster, in one write, and renames the old papers.
//
// Read found.go, join.go, rescue.go.
package membership
