package handler

import (
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// A fetchAnswer is a Fetch response on its way to the client: bytes, and regions
// of files. It is apart from its fetchCall, which serves another request
// meanwhile: a client that does not read its answer holds no more than this (ST-22).
type fetchAnswer struct {
	h       *Handler
	encoder fetchEncoder
	regions []func() // what lets the regions go
	out     server.Response
}

func newFetchAnswer(h *Handler) *fetchAnswer {
	a := &fetchAnswer{h: h}
	a.out.Release = a.recycle
	return a
}

// take encodes the response, and takes the regions over from the results. It
// returns files, which is scratch.
func (a *fetchAnswer) take(h *fetchHeader, results []fetchResult, files []fileCut) []fileCut {
	a.encoder.files = files
	a.out.Parts = a.encoder.encode(h, results)
	files, a.encoder.files = a.encoder.files, nil
	clear(files) // they point into results
	a.regions = slices.Grow(a.regions, len(files))
	for i := range results {
		if r := &results[i].region; r.Release != nil {
			a.regions = append(a.regions, r.Release)
			r.Release = nil
		}
	}
	return files
}

// recycle lets all regions go, once, and makes the answer usable for another.
func (a *fetchAnswer) recycle() {
	for _, release := range a.regions {
		release()
	}
	clear(a.regions)
	clear(a.encoder.parts) // files
	a.regions, a.out.Parts = a.regions[:0], nil
	a.h.answers.Put(a)
}
