package budget

import (
	"slices"
	"strings"
)

// Stage is a part of an order's way, or of the work behind it.
type Stage string

// The stages, in the order of an order's way.
const (
	SocketIn     Stage = "socket in"    // read from the connection
	Parse        Stage = "parse"        // the head of the request, its route
	Authenticate Stage = "authenticate" // the HMAC and whose key it is
	Decode       Stage = "decode"       // JSON to Commands
	Hash         Stage = "hash"         // EIP-712, Keccak
	Signature    Stage = "signature"    // of the order
	Admit        Stage = "admit"        // a place in the pool, limits, whose wallet it is
	Past         Stage = "past"         // whether the index knows the order already
	Ring         Stage = "ring"         // into the ring, out again, and the Receipt back
	Match        Stage = "match"        // Apply
	Encode       Stage = "encode"       // Commands and Events to the bytes of a frame
	Write        Stage = "journal"      // a frame into Pebble and its log
	Sync         Stage = "sync"         // fdatasync
	Fold         Stage = "fold"         // a frame into the index
	Replica      Stage = "replica"      // a frame into the Exchange that checkpoints are written from
	Compaction   Stage = "compaction"   // tables of the journal and the index that are written anew
	Publish      Stage = "publish"      // Board, wallets, streams
	Answer       Stage = "answer"       // Receipt to the bytes of the answer
	SocketOut    Stage = "socket out"   // written to the connection
	Wake         Stage = "scheduler"    // goroutines and threads that wake, park, and wait
	Collector    Stage = "collector"    // of garbage
	Watch        Stage = "watch"        // metrics, the watchman, profiles
	Rest         Stage = "rest"         // no rule knows it
)

// Stages lists them in their order.
func Stages() []Stage {
	return []Stage{SocketIn, Parse, Admit, Authenticate, Decode, Hash, Signature, Past, Ring, Match,
		Encode, Write, Sync, Publish, Answer, SocketOut, Fold, Replica, Compaction, Wake, Collector,
		Watch, Rest}
}

// rule says that a function whose name begins so belongs to a stage.
type rule struct {
	prefix string
	stage  Stage
}

// inner are the rules of work that many stages cause, and that is told apart from them.
var inner = []rule{
	{"runtime.gcBgMarkWorker", Collector},
	{"runtime.gcAssistAlloc", Collector},
	{"runtime.bgsweep", Collector},
	{"runtime.bgscavenge", Collector},
	{"runtime.gcStart", Collector},
	{"runtime.(*mheap).nextSpanForSweep", Collector},
	{"runtime.deductSweepCredit", Collector},
	{"runtime.wbBuf", Collector},
	{"runtime.mcall", Wake},
	{"runtime.park_m", Wake},
	{"runtime.schedule", Wake},
	{"runtime.findRunnable", Wake},
	{"runtime.mstart", Wake},
	{"runtime.sysmon", Wake},
	{"runtime.ready", Wake},
	{"runtime.goready", Wake},
	{"runtime.wakep", Wake},
	{"runtime.startm", Wake},
	{"runtime.stopm", Wake},
	{"runtime.handoffp", Wake},
	{"runtime.exitsyscall", Wake},
	{"runtime.entersyscall", Wake},
	{"runtime.reentersyscall", Wake},
	{"runtime.netpoll", Wake},
	{"runtime.selectgo", Wake},
	{"runtime.semasleep", Wake},
	{"runtime.futex", Wake},
	{"runtime.(*timers)", Wake},
	{"runtime.gopreempt", Wake},
	{"runtime.asyncPreempt", Wake},
	{"runtime.goschedImpl", Wake},
	{"runtime.newproc", Wake},
	{"runtime.goexit0", Wake},
}

// rules are looked through for each frame of a stack, from the leaf outwards.
var rules = []rule{
	{"github.com/cockroachdb/pebble/v2/vfs.(*linuxFile).SyncData", Sync},
	{"golang.org/x/sys/unix.Fdatasync", Sync},
	{"github.com/cockroachdb/pebble/v2.(*DB).runCompaction", Compaction},
	{"github.com/cockroachdb/pebble/v2.(*DB).flush", Compaction},
	{"github.com/cockroachdb/pebble/v2.(*DB).compact", Compaction},
	{"github.com/cockroachdb/pebble/v2.(*DB).maybeScheduleCompaction", Compaction},
	{"github.com/cockroachdb/pebble/v2/sstable.(*RawColumnWriter)", Compaction},
	{"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider.(*fileBuffered", Compaction},
	{"github.com/cockroachdb/pebble/v2/record.(*LogWriter)", Write},
	{"clobd/journal/disk.(*spares)", Write},

	{"clobd/ingress/auth/curve.", Signature},
	{"github.com/ethereum/go-ethereum/crypto/secp256k1.", Signature},
	{"clobd/ingress/auth.(*hasher).recover", Signature},
	{"golang.org/x/crypto/sha3.", Hash},
	{"clobd/ingress/auth.(*hasher)", Hash},
	{"clobd/ingress/auth.(*press)", Hash},
	{"clobd/ingress/auth.(*listing).hash", Hash},
	{"clobd/ingress/auth.(*Order).AppendProof", Signature},
	{"clobd/ingress/auth.(*hotSigners)", Signature},
	{"clobd/ingress/auth.(*Verifier)", Signature},
	{"clobd/ingress/auth.(*listing)", Signature},
	{"clobd/ingress/auth.(*trial)", Signature},
	{"clobd/ingress.(*placement).prove", Signature},
	{"clobd/ingress/auth.(*Keyring)", Authenticate},
	{"clobd/ingress/auth.(*mac)", Authenticate},
	{"clobd/ingress.(*door).authenticate", Authenticate},
	{"clobd/ingress/head.ReadCredentials", Authenticate},
	{"clobd/ingress/form.", Decode},
	{"clobd/api/wire/scan.", Decode},
	{"clobd/ingress.(*orders).read", Decode},
	{"clobd/ingress.(*placement)", Decode},

	{"clobd/ingress.(*pool)", Admit},
	{"clobd/ingress.(*seat)", Admit},
	{"clobd/ingress/limits.", Admit},
	{"clobd/ingress.(*orders).look", Past},
	{"clobd/ingress.(*placing).Enter", Ring},
	{"clobd/ingress.(*placing).wait", Ring},
	{"clobd/ingress.(*bundling).Enter", Ring},
	{"clobd/ingress.(*bundling).enterSome", Ring},
	{"clobd/ingress.(*bundling).wait", Ring},
	{"clobd/journal/history.(*History).Past", Past},

	{"clobd/engine.(*Frame).Encode", Encode},
	{"clobd/engine/sequencer.(*Sequencer).Step", Match},
	{"clobd/engine/sequencer.(*Sequencer).Append", Write},
	{"clobd/engine/sequencer.", Ring},
	{"clobd/engine/view.(*Directory)", Admit},
	{"clobd/engine/view.", Publish},
	{"clobd/engine.(*Exchange)", Match},
	{"clobd/api/stream.", Publish},
	{"clobd/api/wallets.", Publish},

	{"clobd/journal.(*Follower)", Replica},

	{"clobd/ingress/conn.(*Conn).Write", SocketOut},
	{"clobd/ingress/conn.(*Conn).write", SocketOut},
	{"clobd/ingress.(*orderConn).Write", SocketOut},
	{"clobd/ingress.(*orderConn).send", SocketOut},
	{"bufio.(*Writer).Flush", SocketOut},
	{"clobd/ingress/conn.(*Conn).Read", SocketIn},
	{"clobd/ingress.(*orderConn).Read", SocketIn},
	{"clobd/ingress.(*orderConn).receive", SocketIn},
	{"clobd/ingress.(*Server).readBody", SocketIn},
	{"github.com/valyala/fasthttp.(*requestStream)", SocketIn},
	{"bufio.(*Reader).fill", SocketIn},

	{"github.com/prometheus/", Watch},
	{"clobd/ingress.(*routeMetrics)", Watch},
	{"runtime/pprof.profileWriter", Watch},
	{"net/http.", Watch},
	{"main.(*watchman)", Watch},

	{"clobd/ingress/answer.", Answer},
	{"clobd/ingress.(*placing).Finish", Answer},
	{"clobd/ingress.(*placing).settle", Answer},
	{"clobd/ingress.(*placing).reply", Answer},
	{"clobd/ingress.(*bundling).Finish", Answer},
	{"clobd/ingress.(*bundling).settle", Answer},
	{"clobd/ingress.(*orders).answer", Answer},
	{"clobd/ingress.(*bundling).reply", Answer},
	{"clobd/api/wire.", Answer},
	{"github.com/valyala/fasthttp.(*ResponseHeader)", Answer},
	{"github.com/valyala/fasthttp.(*Response)", Answer},
	{"github.com/valyala/fasthttp.writeResponse", Answer},
	{"clobd/ingress.(*Server).stamp", Answer},
	{"clobd/ingress.(*orders)", Decode},
}

// homes are the stages of what no rule knows, by the package. Helpers that several stages share are
// in no rule: the frame that called them decides, and only where no frame has a rule their package.
// Package auth has no home, because both requests and folds call its helpers.
var homes = []rule{
	{"clobd/journal/history.", Fold},
	{"clobd/journal.", Write},
	{"clobd/ingress.", Parse},
	{"clobd/ingress/conn.", Parse},
	{"clobd/ingress/cors.", Parse},
	{"clobd/ingress/socket.", Parse},
	{"github.com/fasthttp/router.", Parse},
	{"github.com/valyala/fasthttp.", Parse},
}

// first are the rules that are asked before homes.
var first = slices.Concat(inner, rules)

// stageOf is the stage of the innermost frame that a rule knows, or else of the innermost one that
// has a home. Frames are from the leaf outwards.
func stageOf(frames []string) Stage {
	for _, list := range [][]rule{first, homes} {
		for _, name := range frames {
			for _, r := range list {
				if strings.HasPrefix(name, r.prefix) {
					return r.stage
				}
			}
		}
	}
	return Rest
}
