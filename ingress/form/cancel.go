package form

import (
	"maps"
	"slices"

	"clobd/api/wire/scan"
)

// CancelID reads the order id of DELETE /order, under any of the names that clients use.
func CancelID(body []byte) (id string, fault *scan.Fault) {
	var f scan.Field
	names := []string{"orderID", "orderId", "order_id", "id", "hash"}
	root := scan.Shape{Names: names, Exact: func(name string) (scan.Slot, bool) {
		return scan.Slot{Into: &f, Kinds: scan.AString}, slices.Contains(names, name)
	}}
	fault = scan.Document(string(body), &root)
	return f.Text, fault
}

// Members reads the members of an object by their exact names.
func Members(body []byte, at map[string]scan.Slot) *scan.Fault {
	return scan.Document(string(body), Shape(at))
}

// Shape describes an object whose members have exactly the given names.
func Shape(at map[string]scan.Slot) *scan.Shape {
	return &scan.Shape{Names: slices.Sorted(maps.Keys(at)),
		Exact: func(n string) (scan.Slot, bool) { slot, ok := at[n]; return slot, ok }}
}

// Replace reads {"cancel":…,"place":…}, the params of order.replace. It returns the order id of the
// cancel, and the body of the new order as the client wrote it.
func Replace(body []byte) (id, place string, fault *scan.Fault) {
	if fault = scan.Keys(string(body)); fault != nil {
		return "", "", fault
	}
	var room [4]scan.Member
	members, ok := scan.Object(body, room[:0])
	for _, m := range members {
		switch string(m.Key) {
		case "cancel":
			id, fault = CancelID(m.Value)
		case "place":
			place = string(m.Value)
		}
	}
	if !ok || place == "" {
		return "", "", &scan.Fault{Why: scan.Malformed}
	}
	return id, place, fault
}

// CancelIDs reads the body of DELETE /orders: a list of ids, each a string or a body of DELETE
// /order. It returns the first most ids and the length of the whole list.
func CancelIDs(body []byte, most int) (ids []string, count int, fault *scan.Fault) {
	values, count, ok := scan.Array(nil, string(body), most)
	if !ok {
		return nil, 0, &scan.Fault{Why: scan.Malformed}
	}
	for _, v := range values {
		id := ""
		switch v[0] {
		case '"':
			id, ok = scan.Unquote(v)
		case '{':
			id, fault = CancelID([]byte(v))
		default:
			ok = false
		}
		if fault != nil {
			return nil, 0, fault
		} else if !ok {
			return nil, 0, &scan.Fault{Why: scan.Malformed}
		}
		ids = append(ids, id)
	}
	return ids, count, nil
}
