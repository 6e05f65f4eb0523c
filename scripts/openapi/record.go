package openapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Promises are the answers that the document promises for the routes with one of the tags, as
// "GET /book 404", sorted.
func (d *Document) Promises(tags ...string) []string {
	var all []string
	wanted := func(tag string) bool { return slices.Contains(tags, tag) }
	for i := range d.routes {
		r := &d.routes[i]
		if !slices.ContainsFunc(r.operation.Tags, wanted) {
			continue
		}
		for status := range r.operation.Responses.Map() {
			all = append(all, r.name()+" "+status)
		}
	}
	slices.Sort(all)
	return all
}

// Record notes which of the documented answers were seen, and which of the documented codes. Any
// number of goroutines may use it. A nil Record notes nothing.
type Record struct {
	mutex sync.Mutex
	seen  map[string]bool // in the form of Unkept
}

// Note adds an answer. An answer to HEAD does not count as one to GET: it has no body to check.
func (r *Record) Note(d *Document, a *Answer) {
	if r == nil {
		return
	}
	var refused struct{ Code string }
	if a.Status >= 400 {
		_ = json.Unmarshal(a.Body, &refused) // a body that is no object has no code
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	if refused.Code != "" {
		r.seen["code "+refused.Code] = true
	}
	if a.Method != "HEAD" {
		r.seen[d.Name(a.Method, a.Target)+" "+strconv.Itoa(a.Status)] = true
	}
}

// Seen says whether a promise was kept.
func (r *Record) Seen(promise string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[promise]
}

// Exception is what the scripts of requests and answers cannot provoke, and the test that does.
type Exception struct {
	What string // a promise, "*" and the end of promises, or "code" and a word
	Test string // FOLDER.TestName
	Why  string
}

// covers says whether an exception is for a promise.
func (e *Exception) covers(promise string) bool {
	end, is := strings.CutPrefix(e.What, "*")
	return e.What == promise || is && strings.HasSuffix(promise, end)
}

// Unkept says what is neither in the record nor an exception, and which exceptions are none: what
// they are for was seen, or is not promised, or their test is not there. The promises are those of
// Promises, and words for machines as "code busy".
func (r *Record) Unkept(promises []string, list []Exception) (problems []string) {
	used := make([]bool, len(list))
	for _, p := range promises {
		if r.Seen(p) {
			continue
		}
		excepted := false
		for i := range list {
			if list[i].covers(p) {
				used[i], excepted = true, true
			}
		}
		if !excepted {
			problems = append(problems, p+": promised, and no script shows it")
		}
	}
	for i, e := range list {
		if !used[i] {
			problems = append(problems, e.What+": an exception that is none")
		}
		if err := exists(e.Test); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", e.What, err))
		}
	}
	return problems
}

// exists finds a test in the tree of the module that the working folder is in.
func exists(test string) error {
	folder, name, _ := strings.Cut(test, ".")
	root, err := Module()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return fmt.Errorf("look for %s: %w", test, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("look for %s: %w", test, err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return nil
		}
	}
	return fmt.Errorf("there is no test %s", test)
}
