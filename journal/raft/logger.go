package raft

import (
	"context"
	"fmt"
	"log/slog"
)

// logger writes what the library says to a log. What the library calls fatal is a mistake of the
// program, or a journal that lost what it promised: it panics, and the process ends.
type logger struct{ log *slog.Logger }

func (l *logger) say(level slog.Level, format string, v ...any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "raft", "text", fmt.Sprintf(format, v...))
	}
}

const plain = "%v"

// Debug and the others are the library's.
func (l *logger) Debug(v ...any)              { l.say(slog.LevelDebug, plain, v) }
func (l *logger) Debugf(f string, v ...any)   { l.say(slog.LevelDebug, f, v...) }
func (l *logger) Info(v ...any)               { l.say(slog.LevelDebug, plain, v) }
func (l *logger) Infof(f string, v ...any)    { l.say(slog.LevelDebug, f, v...) }
func (l *logger) Warning(v ...any)            { l.say(slog.LevelWarn, plain, v) }
func (l *logger) Warningf(f string, v ...any) { l.say(slog.LevelWarn, f, v...) }
func (l *logger) Error(v ...any)              { l.say(slog.LevelError, plain, v) }
func (l *logger) Errorf(f string, v ...any)   { l.say(slog.LevelError, f, v...) }
func (l *logger) Fatal(v ...any)              { l.Panicf(plain, v) }
func (l *logger) Fatalf(f string, v ...any)   { l.Panicf(f, v...) }
func (l *logger) Panic(v ...any)              { l.Panicf(plain, v) }

// Panicf ends the process.
func (l *logger) Panicf(f string, v ...any) { panic("BUG: raft: " + fmt.Sprintf(f, v...)) }
