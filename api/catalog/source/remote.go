package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"clobd/api/catalog"
	"clobd/api/wire/scan"
	"clobd/engine"
)

const (
	// maxAnswer bounds one answer of a service, unpacked.
	maxAnswer = 10 << 20
	// answerTime bounds the time that one answer may take.
	answerTime = 10 * time.Second
	// pageSize is how many records one request asks for.
	pageSize = 100
	// stagePages are entered and published together.
	stagePages = 64
	// overlap is how far before the newest known record the next look goes: clocks differ.
	overlap = 2 * time.Minute
	// wholeEvery is how often everything is looked at, also what has not been updated.
	wholeEvery = 24 * time.Hour
	// serviceEvery is how often a service is asked for what is new.
	serviceEvery = time.Minute
	// maxKept bounds how many answers are remembered by their ETags.
	maxKept = 256
	// maxBooks bounds how many order-book records are asked for one by one at a time.
	maxBooks = 1000
)

// remoteList is a list of a service, in the order in which lists are read: what others refer to
// first.
type remoteList struct {
	name  string // of the path, and of the member that holds a page's records
	keyed bool   // it may have a form that goes on from a cursor and can be sorted by updatedAt
	// books is the order book's list. Its records do not say when they were updated, so it is only
	// read when everything is; in between, one by one, those of markets that the other lists say
	// have changed.
	books bool
}

// bookList is the name of the order book's list.
const bookList = "clob/markets"

func remoteLists() []remoteList {
	return []remoteList{{name: "tags"}, {name: "series"}, {name: "events", keyed: true},
		{name: "markets", keyed: true}, {name: bookList, books: true}}
}

// answerMark remembers an answer, so that the same one need not be sent again.
type answerMark struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Records  int    `json:"records"`
}

// listMark is how far a list was read.
type listMark struct {
	// Newest is the latest updatedAt when the last walk began, in unix milliseconds.
	Newest int64 `json:"newest"`
	// Whole is when the list was last read from end to end, in unix seconds.
	Whole int64 `json:"whole"`
	// None says that the service has no such list.
	None bool `json:"none,omitempty"`
}

// statusError is an answer that is none.
type statusError struct {
	path  string
	code  int
	after time.Duration // not before then, if the service says so
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: status %d", e.path, e.code)
}

// none says that what was asked for does not exist there, and will not when asked for again.
func (e *statusError) none() bool {
	switch e.code {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

func parseBase(source string) (*url.URL, error) {
	base, err := url.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("open catalog: %s is not the base address of a service", source)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	return base, nil
}

// remote asks a service. It belongs to one goroutine.
type remote struct {
	base   *url.URL
	client *http.Client
	status *healthBoard
	mark   *sourceMark
	plain  map[string]bool // lists that have no form with a cursor
	// due are markets that have changed and whose order-book records have not been asked for since.
	due map[engine.Condition]bool
}

func newRemote(base *url.URL, status *healthBoard, at *sourceMark) *remote {
	if at.Lists == nil {
		at.Lists = map[string]listMark{}
	}
	if at.Answers == nil {
		at.Answers = map[string]answerMark{}
	}
	return &remote{base: base, status: status, mark: at, plain: map[string]bool{},
		due:    map[engine.Condition]bool{},
		client: &http.Client{CheckRedirect: sameHost}}
}

// sameHost follows redirects to the host that was asked and to no other.
func sameHost(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("redirected to another host, %s", next.URL.Host)
	}
	if len(before) >= 5 {
		return errors.New("redirected five times")
	}
	return nil
}

// answer is a page of a list.
type answer struct {
	body []byte
	same bool       // as it was when mark was made
	mark answerMark // of this answer; kept once what it holds is
	key  string
}

// get asks for a path with its query; if again, only for what is not the same answer as before.
func (r *remote) get(ctx context.Context, path string, again bool) (a answer, err error) {
	at := *r.base
	a.key = path
	path, at.RawQuery, _ = strings.Cut(path, "?")
	at.Path += path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return a, fmt.Errorf("ask the catalog's source: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	before, known := r.mark.Answers[a.key]
	if again && known && before.ETag != "" {
		request.Header.Set("If-None-Match", before.ETag)
	}
	if again && known && before.Modified != "" {
		request.Header.Set("If-Modified-Since", before.Modified)
	}
	defer func() {
		switch {
		case err != nil:
			r.status.note(requestFailed)
		case a.same:
			r.status.note(requestUnchanged)
		default:
			r.status.note(requestNew)
		}
	}()
	response, err := r.client.Do(request)
	if err != nil {
		return a, fmt.Errorf("ask the catalog's source: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotModified && known:
		a.same, a.mark = true, before
		return a, nil
	case response.StatusCode != http.StatusOK:
		wait, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return a, &statusError{path, response.StatusCode, time.Duration(wait) * time.Second}
	}
	a.mark.ETag = response.Header.Get("ETag")
	a.mark.Modified = response.Header.Get("Last-Modified")
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1)); err != nil {
		return a, fmt.Errorf("read GET %s: %w", path, err)
	}
	if len(a.body) > maxAnswer {
		return a, fmt.Errorf("the answer to GET %s is longer than %d bytes", path, maxAnswer)
	}
	return a, nil
}

// keep remembers an answer whose records have been entered.
func (r *remote) keep(a *answer) {
	if a.mark.ETag == "" && a.mark.Modified == "" {
		return
	}
	if len(r.mark.Answers) >= maxKept {
		clear(r.mark.Answers)
	}
	r.mark.Answers[a.key] = a.mark
}

// walkThrough is a way through a list, page by page.
type walkThrough struct {
	list   remoteList
	head   bool  // only its first page is asked for
	since  int64 // the updatedAt to go back to, in unix milliseconds; 0: everything
	newest int64 // the latest one seen
	cursor string
	offset int
	pages  int
	done   bool
}

// recordTaker takes a record and says when it was updated, in unix milliseconds.
type recordTaker func(record []byte) (updated int64)

// next is the next page of a walk, its records one by one to take.
func (r *remote) next(ctx context.Context, w *walkThrough, take recordTaker) (answer, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	path := "/" + w.list.name
	keyed := w.list.keyed && !r.plain[w.list.name]
	if w.list.keyed && w.since > 0 {
		query.Set("order", "updatedAt")
		query.Set("ascending", "false")
	} else if w.list.keyed {
		query.Set("order", "id")
		query.Set("ascending", "true")
	}
	if w.list.books {
		query = url.Values{"next_cursor": {cmp.Or(w.cursor, "MA==")}}
	} else if keyed {
		if path += "/keyset"; w.cursor != "" {
			query.Set("after_cursor", w.cursor)
		}
	} else {
		query.Set("offset", strconv.Itoa(w.offset))
	}
	a, err := r.get(ctx, path+"?"+query.Encode(), w.repeats())
	var status *statusError
	if errors.As(err, &status) && keyed && w.pages == 0 && status.none() {
		r.plain[w.list.name] = true
		return r.next(ctx, w, take)
	} else if err != nil {
		return a, err
	}
	return a, r.turn(w, &a, take)
}

// repeats says whether the next page is one that was asked for before and may be the same: the
// first of what was updated, or any of a list without order. In a walk through everything the
// cursor would be lost with the page.
func (w *walkThrough) repeats() bool {
	return !w.list.keyed && !w.list.books || w.since > 0 && w.pages == 0 && !w.head
}

// turn takes the records of a page and stands before the next one.
func (r *remote) turn(w *walkThrough, a *answer, take recordTaker) error {
	w.pages++
	if a.same {
		// Sorted by what was updated, nothing has been; else the next page may still be another one.
		w.offset += a.mark.Records
		w.done = w.since > 0 || a.mark.Records == 0
		return nil
	}
	list, cursor, err := pageOfAnswer(a.body, w.list.name)
	if err != nil {
		return fmt.Errorf("GET %s: %w", a.key, err)
	}
	oldest, future := int64(1<<63-1), time.Now().Add(overlap).UnixMilli()
	scan.Elements(list, func(record []byte) {
		a.mark.Records++
		updated := take(record)
		if updated <= future { // one of the far future would hide all that comes until then
			w.newest = max(w.newest, updated)
		}
		if updated > 0 {
			oldest = min(oldest, updated)
		}
	})
	w.offset += a.mark.Records
	switch {
	case a.mark.Records == 0, w.since > 0 && oldest < w.since:
		w.done = true
	case w.list.books || w.list.keyed && !r.plain[w.list.name]:
		if cursor == w.cursor && cursor != "" {
			return fmt.Errorf("GET %s: the next cursor is the same again", a.key)
		}
		w.cursor, w.done = cursor, cursor == ""
	}
	if w.offset > 2*catalog.MaxMarkets {
		return fmt.Errorf("GET %s: the list has no end", a.key)
	}
	return nil
}

// pageOfAnswer reads a page: an array, or an object with the array under the list's name (or data)
// and a next_cursor.
func pageOfAnswer(body []byte, name string) (list []byte, cursor string, err error) {
	if i := scan.Space(body, 0); i < len(body) && body[i] == '[' {
		if !scan.Elements(body, func([]byte) {}) {
			return nil, "", errors.New("broken JSON")
		}
		return body, "", nil
	}
	members, ok := scan.Object(body, nil)
	if !ok {
		return nil, "", errors.New("broken JSON")
	}
	for i := range members {
		switch string(members[i].Key) {
		case name, "data":
			list = members[i].Value
		case "next_cursor":
			cursor, _ = scan.Text(members[i].Value)
		}
	}
	if list == nil || list[0] != '[' {
		return nil, "", fmt.Errorf("no list of %s in the answer", name)
	}
	if cursor == "LTE=" {
		cursor = ""
	}
	return list, cursor, nil
}

// syncRemote asks the service for what is new, or for everything.
func (s *Source) syncRemote(ctx context.Context, everything bool) (catalog.Report, error) {
	total := catalog.Report{Skipped: map[catalog.Reason]int{}}
	for _, list := range remoteLists() {
		mark := s.mark.Lists[list.name]
		w := &walkThrough{list: list}
		if !everything && list.keyed && mark.Newest > 0 && walked(mark) {
			w.since = max(1, mark.Newest-overlap.Milliseconds())
		}
		if list.books && !everything && walked(mark) {
			continue
		}
		err := s.readList(ctx, w, &total)
		var status *statusError
		if list.books && errors.As(err, &status) && status.code == http.StatusNotFound {
			err = nil // it has no order book
			s.mark.Lists[list.name] = listMark{Whole: time.Now().Unix(), None: true}
		}
		if err != nil {
			return total, err
		}
	}
	if err := s.readBooks(ctx, &total); err != nil {
		return total, err
	}
	_, err := s.store.Load(s.mark.text, func(*catalog.Load) error { return nil }) // keeps the mark
	return total, err
}

// walked says whether a list was read from end to end not long ago.
func walked(mark listMark) bool {
	return time.Now().Unix()-mark.Whole < int64(wholeEvery/time.Second)
}

// readList reads a list, a stage at a time: what was read so far is published, also if the rest
// cannot be had.
func (s *Source) readList(ctx context.Context, w *walkThrough, total *catalog.Report) error {
	mark := s.mark.Lists[w.list.name]
	if w.since == 0 {
		mark.Newest = 0
	}
	if w.since == 0 && w.list.keyed {
		// What changes while the list is read is newer than what is the newest now.
		head := &walkThrough{list: w.list, since: 1, head: true}
		_, err := s.remote.next(ctx, head, catalog.UpdatedAt)
		var status *statusError
		if err != nil && !errors.As(err, &status) {
			return err
		}
		mark.Newest = head.newest
	}
	for !w.done {
		if err := s.stage(ctx, w, total); err != nil {
			return err
		}
	}
	if w.since > 0 {
		mark.Newest = max(mark.Newest, w.newest)
	} else {
		mark.Whole = time.Now().Unix()
	}
	s.mark.Lists[w.list.name] = mark
	return nil
}

// stage reads some pages and publishes what they change.
func (s *Source) stage(ctx context.Context, w *walkThrough, total *catalog.Report) error {
	var answers []answer
	var failure error
	number := w.offset
	report, err := s.load(s.mark, func(l *catalog.Load) error {
		l.File = "/" + w.list.name
		for range stagePages {
			a, err := s.remote.next(ctx, w,
				func(record []byte) int64 {
					number++
					return l.Record(record, number)
				})
			if err != nil {
				failure = err // the pages before it count
				break
			}
			if a.body = nil; !w.list.keyed && !w.list.books || w.pages == 1 {
				answers = append(answers, a)
			}
			if w.done {
				break
			}
		}
		if w.since > 0 {
			for _, condition := range l.Changed() {
				s.remote.due[condition] = true
			}
		}
		return l.Err()
	})
	total.Add(&report)
	if err == nil {
		for i := range answers {
			s.remote.keep(&answers[i])
		}
	}
	return errors.Join(err, failure)
}

// readBooks reads the order book's records of markets that have changed.
func (s *Source) readBooks(ctx context.Context, total *catalog.Report) error {
	r := s.remote
	if r.mark.Lists[bookList].None {
		clear(r.due)
	}
	if len(r.due) == 0 {
		return nil
	}
	var read []engine.Condition
	var failure error
	report, err := s.load(s.mark, func(l *catalog.Load) error {
		l.File = "/" + bookList
		for c := range r.due {
			a, err := r.get(ctx, "/"+bookList+"/"+c.Hex(), false)
			var status *statusError
			if err == nil {
				l.Record(a.body, len(read)+1)
			} else if !errors.As(err, &status) || !status.none() {
				failure = err
				break
			}
			if read = append(read, c); len(read) == maxBooks {
				break
			}
		}
		return l.Err()
	})
	total.Add(&report)
	if err == nil {
		for _, c := range read {
			delete(r.due, c)
		}
	}
	return errors.Join(err, failure)
}
