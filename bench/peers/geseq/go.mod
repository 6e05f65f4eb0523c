module clobd/bench/peers/geseq

go 1.26

require github.com/geseq/udecimal v0.0.0-20211126195629-659dde5a92d8
