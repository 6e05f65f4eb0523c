package page

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"clobd/ingress/answer"
)

const (
	warningsKept = 50
	warningBytes = 600 // of the text of one
)

// Recent is what a node has told lately: its slowest orders, and the last warnings and errors of
// its log. All methods may be called at once.
type Recent struct {
	Slowest answer.Slowest

	mutex sync.Mutex
	kept  []warning // the newest last
	total uint64
}

// warning is a line of the log. Strangers may have chosen parts of its text.
type warning struct {
	At    int64  `json:"at"` // unix milliseconds
	Level string `json:"level"`
	Text  string `json:"text"` // message and attributes, cut
}

// Handler is the part of a log that Recent reads.
func (w *Recent) Handler() slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
}

// Write keeps one line, which begins with its level.
func (w *Recent) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line[:min(len(line), warningBytes)]), "\n")
	if len(line) > warningBytes {
		text += " …"
	}
	level, text, _ := strings.Cut(strings.TrimPrefix(text, "level="), " ")
	text = strings.TrimPrefix(text, "msg=")
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		message, _ := strconv.Unquote(quoted)
		text = message + text[len(quoted):]
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.kept) == warningsKept {
		w.kept = append(w.kept[:0], w.kept[1:]...)
	}
	w.kept = append(w.kept, warning{time.Now().UnixMilli(), level,
		strings.ToValidUTF8(text, "")})
	w.total++
	return len(line), nil
}

// last returns the warnings that are kept, the newest first, and how many there have been.
func (w *Recent) last() ([]warning, uint64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	all := make([]warning, 0, len(w.kept))
	for i := range w.kept {
		all = append(all, w.kept[len(w.kept)-1-i])
	}
	return all, w.total
}
