package main

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
)

// listen makes the witness check what both sides send on a new socket.
func (w *witness) listen(r *http.Response) {
	socket, both := r.Body.(io.ReadWriteCloser)
	if w.protocol == nil || !both {
		return
	}
	path := r.Request.URL.Path
	r.Body = &overheard{socket,
		ear{text: func(text []byte) { w.hear(path, "node", text, w.protocol.Check(path, text)) }},
		ear{text: func(text []byte) { w.hear(path, "client", text, w.protocol.CheckSent(path, text)) }}}
}

// hear counts a text message, and notes err, which says what is wrong with it.
func (w *witness) hear(path, who string, text []byte, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.heard++
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), string(text))
		w.note(path+" "+who+" "+why, err)
	}
}

// overheard is the connection to the node. The proxy copies what it reads from it to the client.
type overheard struct {
	io.ReadWriteCloser
	node, client ear
}

// Read reads what the node sends, and checks it.
func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.ReadWriteCloser.Read(b)
	o.node.hear(b[:n])
	return n, err
}

// Write checks what the client sends, and writes it. It checks first, so that a text is counted
// before the node's answer to it passes.
func (o *overheard) Write(b []byte) (int, error) {
	o.client.hear(b)
	return o.ReadWriteCloser.Write(b)
}

// ear joins the bytes that one side of a socket sends into whole text messages. Reads may split
// the bytes anywhere.
type ear struct {
	text  func([]byte)
	bytes []byte // bytes of a frame that is not complete
	begun []byte // bytes of a text message that is not complete
}

func (e *ear) hear(b []byte) {
	e.bytes = append(e.bytes, b...)
	for {
		f, rest, whole := cut(e.bytes)
		if !whole {
			return
		}
		e.bytes = rest
		switch f.code {
		case 0, 1: // a text message goes on, or begins
			if e.begun = append(e.begun, f.payload...); f.final {
				e.text(e.begun)
				e.begun = nil
			}
		}
	}
}

// frame is a WebSocket frame, with its payload unmasked.
type frame struct {
	final   bool
	code    byte
	payload []byte
}

// cut returns the first frame in b, and the bytes after it. whole is false if the frame is not
// complete.
func cut(b []byte) (f frame, rest []byte, whole bool) {
	if len(b) < 2 {
		return f, b, false
	}
	f.final, f.code = b[0]&0x80 != 0, b[0]&0x0f
	size, at := uint64(b[1]&0x7f), 2
	switch size {
	case 126:
		at = 4
	case 127:
		at = 10
	}
	mask := at
	if b[1]&0x80 != 0 {
		at += 4
	}
	if len(b) < at {
		return f, b, false
	}
	switch size {
	case 126:
		size = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		size = binary.BigEndian.Uint64(b[2:])
	}
	if uint64(len(b)-at) < size {
		return f, b, false
	}
	f.payload = append([]byte(nil), b[at:at+int(size)]...)
	for i := range f.payload {
		if at > mask {
			f.payload[i] ^= b[mask+i%4]
		}
	}
	return f, b[at+int(size):], true
}
