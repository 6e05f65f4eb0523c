// One socket of the node, which is opened again whenever it ends, and says how it fares.

const beat = 1000; // the node's heartbeats, in milliseconds
const late = 1.3 * beat; // without a word for so long, the page is behind
const dead = 10 * beat; // then the socket is given up

// Stream tells state(name, since, why) and message(m). States: opening, live, late, resync, closed, and
// refused, which is the last one: the node knows no such key. What is said first comes from hello(seq),
// seq being the last one told or 0; it may be a promise.
export class Stream {
	constructor(path, { hello, message, state }) {
		Object.assign(this, { path, hello, message, tellState: state, seq: 0, name: "", tries: 0, heard: 0 });
		this.open();
		this.watch = setInterval(() => this.look(), 50);
		this.awake = () => document.hidden || this.look();
		document.addEventListener("visibilitychange", this.awake);
	}

	open() {
		if (!this.seq) this.be("opening");
		this.part = this.next = 0;
		this.heard = performance.now();
		const url = new URL(this.path, location.href);
		url.protocol = url.protocol.replace("http", "ws");
		const socket = this.socket = new WebSocket(url);
		socket.onopen = async () => {
			try {
				const wish = await this.hello(this.seq);
				if (socket === this.socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(wish));
			} catch {
				socket.close();
			}
		};
		socket.onmessage = event => socket === this.socket && this.hear(event.data);
		socket.onclose = event => socket === this.socket && this.lost(event);
	}

	hear(text) {
		this.heard = performance.now();
		let told;
		try {
			told = JSON.parse(text);
		} catch {
			return; // PONG and NO NEW ASSETS
		}
		const socket = this.socket;
		let good = false;
		for (const m of Array.isArray(told) ? told : [told]) {
			if (this.next && m.sequence !== this.next) return this.again(); // one is missing
			this.next = m.sequence + 1;
			if (m.seq) this.seq = m.seq;
			if (m.event_type === "resync") {
				this.resynced = this.heard;
				this.be("resync");
			}
			good ||= m.event_type !== "error";
			this.message(m);
			if (m.event_type === "error" && m.code === "unauthorized") return this.refused(m.message);
			if (socket !== this.socket) return; // it was closed, or started over
		}
		if (!good) return; // what only complains may do so again at once: no reason to come back sooner
		this.tries = 0;
		// A resync stays to be seen for a moment.
		if (!(this.resynced > this.heard - 1500)) this.be("live");
	}

	// again starts over: with fresh books, not with what was missed.
	again() {
		const soon = this.resynced > performance.now() - 5000;
		this.seq = 0;
		this.resynced = performance.now();
		this.socket.onclose = null;
		this.socket.close();
		if (soon) {
			this.tries = 3; // whatever is wrong, the node shall not suffer from it
			return this.lost({});
		}
		this.open();
		this.be("resync");
	}

	look() {
		const silent = performance.now() - this.heard;
		if (silent > late && (this.name === "live" || this.name === "resync")) this.be("late");
		if (this.name === "late") this.tellState("late", silent);
		if (silent > dead && this.socket) {
			const socket = this.socket;
			this.socket = null;
			socket.close();
			this.lost({});
		}
	}

	// refused ends it: the same key would be refused again.
	refused(why) {
		this.close();
		this.be("refused", why);
	}

	lost({ reason }) {
		if (reason === "unauthorized") return this.refused(reason);
		this.socket = null;
		this.be("closed", reason);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.open(), Math.min(250 * 2 ** this.tries++, 4000));
	}

	be(name, why) {
		if (name === this.name) return;
		this.name = name;
		this.tellState(name, name === "late" ? performance.now() - this.heard : 0, why);
	}

	send(wish) {
		if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(wish));
	}

	close() {
		clearInterval(this.watch);
		clearTimeout(this.timer);
		document.removeEventListener("visibilitychange", this.awake);
		const socket = this.socket;
		this.socket = null;
		socket?.close();
	}
}
