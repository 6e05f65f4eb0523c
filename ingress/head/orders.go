package head

import "bytes"

// The paths of requests that place orders, and how public clients begin such a request.
const (
	OrderPath  = "/order"
	ListPath   = "/orders"
	OrderStart = "POST " + OrderPath + " "
	listStart  = "POST " + ListPath + " "
)

// PlacesOrders reports whether bytes seem to begin a request that places orders, or a list of them.
func PlacesOrders(b []byte) (orders, list bool) {
	for i, start := range [...]string{OrderStart, "POST /clob" + OrderPath + " ", listStart,
		"POST /clob" + ListPath + " "} {
		if bytes.HasPrefix(b, []byte(start)) {
			return true, i > 1
		}
	}
	return false, false
}
