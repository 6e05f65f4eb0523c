package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/api/catalog"
	"clobd/api/wire/scan"
	"clobd/engine"
)

const (
	maxAnswer  = 10 << 20         // bytes of one answer, unpacked
	answerTime = 10 * time.Second // for one answer
	pageSize   = 100              // records that one request asks for
	stagePages = 64               // pages that are entered and published together
	wholeEvery = 24 * time.Hour   // between two walks through everything
	maxKept    = 256              // answers that are remembered
	maxBooks   = 1000             // order-book records that one look asks for one by one
	// overlap is how far a look goes back before the newest known record: clocks differ.
	overlap = 2 * time.Minute
)

// remoteList is a list of a service.
type remoteList struct {
	name  string // of the path, and of the member that holds a page's records
	keyed bool   // the list can be sorted by updatedAt, and may have a form with a cursor
	// books marks the order book's list. Its records do not say when they were updated, so a look
	// reads only the records of markets that changed in the other lists, one by one.
	books bool
}

// bookList is the name of the order book's list.
const bookList = "clob/markets"

// remoteLists returns the lists in the order of reading: first those that others refer to.
func remoteLists() []remoteList {
	return []remoteList{{name: "tags"}, {name: "series"}, {name: "events", keyed: true},
		{name: "markets", keyed: true}, {name: bookList, books: true}}
}

// answerMark remembers an answer, so that the service need not send the same answer again.
type answerMark struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Records  int    `json:"records"`
}

// listMark says how far a list was read.
type listMark struct {
	// Newest is the latest updatedAt when the last walk began, in unix milliseconds.
	Newest int64 `json:"newest"`
	// Whole is when the list was last read from end to end, in unix seconds.
	Whole int64 `json:"whole"`
	// None says that the service has no such list.
	None bool `json:"none,omitempty"`
}

// statusError is an answer other than 200.
type statusError struct {
	path  string
	code  int
	after time.Duration // the service wants no request before
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: status %d", e.path, e.code)
}

// none reports whether the path does not exist and never will.
func (e *statusError) none() bool {
	return slices.Contains([]int{http.StatusNotFound, http.StatusBadRequest,
		http.StatusMethodNotAllowed}, e.code)
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

// sameHost allows at most five redirects, all to the host that was asked.
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
	same bool       // the answer that mark remembers is still valid; body is empty
	mark answerMark // of this answer
	key  string     // the path with its query
}

// get asks for a path with its query; if again, only for an answer that differs from the last one.
func (s *Source) get(ctx context.Context, path string, again bool) (a answer, err error) {
	at := *s.base
	a.key = path
	path, at.RawQuery, _ = strings.Cut(path, "?")
	at.Path += path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return a, fmt.Errorf("ask the catalog's source: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	before, known := s.mark.Answers[a.key]
	if again && known && before.ETag != "" {
		request.Header.Set("If-None-Match", before.ETag)
	}
	if again && known && before.Modified != "" {
		request.Header.Set("If-Modified-Since", before.Modified)
	}
	defer func() { s.asked(a.same, err) }()
	response, err := s.client.Do(request)
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

// keep remembers an answer once its records have been entered.
func (s *Source) keep(a *answer) {
	if a.mark.ETag == "" && a.mark.Modified == "" {
		return
	}
	if len(s.mark.Answers) >= maxKept {
		clear(s.mark.Answers)
	}
	s.mark.Answers[a.key] = a.mark
}

// walkThrough is a way through a list, page by page.
type walkThrough struct {
	list   remoteList
	head   bool  // only the first page is wanted
	since  int64 // the updatedAt to go back to, in unix milliseconds; 0: everything
	newest int64 // the latest updatedAt seen
	cursor string
	offset int
	pages  int
	done   bool
}

// recordTaker takes a record and says when it was updated, in unix milliseconds.
type recordTaker func(record []byte) (updated int64)

// next asks for the next page of a walk and hands its records to take.
func (s *Source) next(ctx context.Context, w *walkThrough, take recordTaker) (answer, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	path := "/" + w.list.name
	keyed := w.list.keyed && !s.plain[w.list.name]
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
	a, err := s.get(ctx, path+"?"+query.Encode(), w.repeats())
	status, ok := errors.AsType[*statusError](err)
	if ok && keyed && w.pages == 0 && status.none() {
		s.plain[w.list.name] = true
		return s.next(ctx, w, take)
	} else if err != nil {
		return a, err
	}
	return a, s.turn(w, &a, take)
}

// repeats reports whether the next page was asked for before and may be the same: the first page of
// the updated records, or any page of a list without order. Pages with cursors are always asked for
// anew: a page that is not sent has no cursor.
func (w *walkThrough) repeats() bool {
	return !w.list.keyed && !w.list.books || w.since > 0 && w.pages == 0 && !w.head
}

// turn takes the records of a page and moves on to the next page.
func (s *Source) turn(w *walkThrough, a *answer, take recordTaker) error {
	w.pages++
	if a.same {
		// No record was updated; or, in a list without order, the next page may still differ.
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
		if updated <= future { // a later time would hide all updates until then
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
	case w.list.books || w.list.keyed && !s.plain[w.list.name]:
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

// pageOfAnswer reads a page: an array, or an object with the array under name or data, and with a
// next_cursor.
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

// syncRemote asks the service for new records, or for everything.
func (s *Source) syncRemote(ctx context.Context, everything bool) error {
	for _, list := range remoteLists() {
		mark := s.mark.Lists[list.name]
		recent := !everything && time.Since(time.Unix(mark.Whole, 0)) < wholeEvery
		if list.books && recent {
			continue
		}
		w := &walkThrough{list: list}
		if list.keyed && recent && mark.Newest > 0 {
			w.since = max(1, mark.Newest-overlap.Milliseconds())
		}
		err := s.readList(ctx, w)
		status, ok := errors.AsType[*statusError](err)
		if ok && list.books && status.code == http.StatusNotFound {
			err = nil // the service has no order book
			s.mark.Lists[list.name] = listMark{Whole: time.Now().Unix(), None: true}
		}
		if err != nil {
			return err
		}
	}
	if err := s.readBooks(ctx); err != nil {
		return err
	}
	_, err := s.store.Load(s.mark.text, func(*catalog.Load) error { return nil }) // keeps the mark
	return err
}

// readList reads a list, a stage at a time. The stages before an error stay published.
func (s *Source) readList(ctx context.Context, w *walkThrough) error {
	mark := s.mark.Lists[w.list.name]
	if w.since == 0 {
		mark.Newest = 0
	}
	if w.since == 0 && w.list.keyed {
		// A record that changes during the walk will be newer than the newest record now.
		head := &walkThrough{list: w.list, since: 1, head: true}
		_, err := s.next(ctx, head, catalog.UpdatedAt)
		if _, ok := errors.AsType[*statusError](err); err != nil && !ok {
			return err
		}
		mark.Newest = head.newest
	}
	for !w.done {
		if err := s.stage(ctx, w); err != nil {
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

// stage reads some pages and publishes their changes.
func (s *Source) stage(ctx context.Context, w *walkThrough) error {
	var answers []answer
	var failure error
	number := w.offset
	err := s.load(s.mark, func(l *catalog.Load) error {
		l.File = "/" + w.list.name
		for page := 0; page < stagePages && !w.done; page++ {
			var a answer
			a, failure = s.next(ctx, w, func(record []byte) int64 {
				number++
				return l.Record(record, number)
			})
			if failure != nil {
				break // the pages before count
			}
			if a.body = nil; !w.list.keyed && !w.list.books || w.pages == 1 {
				answers = append(answers, a)
			}
		}
		if w.since > 0 {
			for _, condition := range l.Changed() {
				s.due[condition] = true
			}
		}
		return l.Err()
	})
	if err == nil {
		for i := range answers {
			s.keep(&answers[i])
		}
	}
	return errors.Join(err, failure)
}

// readBooks reads the order book's records of markets that have changed.
func (s *Source) readBooks(ctx context.Context) error {
	if s.mark.Lists[bookList].None {
		clear(s.due)
	}
	if len(s.due) == 0 {
		return nil
	}
	var read []engine.Condition
	var failure error
	err := s.load(s.mark, func(l *catalog.Load) error {
		l.File = "/" + bookList
		for c := range s.due {
			a, err := s.get(ctx, "/"+bookList+"/"+c.Hex(), false)
			if err == nil {
				l.Record(a.body, len(read)+1)
			} else if status, ok := errors.AsType[*statusError](err); !ok || !status.none() {
				failure = err
				break
			}
			if read = append(read, c); len(read) == maxBooks {
				break
			}
		}
		return l.Err()
	})
	if err == nil {
		for _, c := range read {
			delete(s.due, c)
		}
	}
	return errors.Join(err, failure)
}
