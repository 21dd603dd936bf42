package importer

import (
	"context"

	"leadferry/checkpoint"
)

// calls asks a blocking ledger on behalf of an engine that is called back.
type calls struct {
	*checkpoint.Digester
	l     *checkpoint.Ledger
	ctx   context.Context
	info  checkpoint.Info
	shape *checkpoint.Shape
}

func newCalls(ctx context.Context, l *checkpoint.Ledger) *calls {
	return &calls{Digester: l.Digests(), l: l, ctx: context.WithoutCancel(ctx), info: l.Info()}
}

func (c *calls) Find(qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	return c.l.Find(c.ctx, qs, out, how)
}

func (c *calls) Claim(in checkpoint.Intent, done func(error)) {
	in.Shape, c.shape = c.shape, nil
	c.l.Do(checkpoint.Change{Kind: checkpoint.Claim, Entry: in.Entry(), Shape: in.Shape}, func(_ checkpoint.Entry, err error) { done(err) })
}

func (c *calls) Withdraw(key string, done func(error)) {
	c.l.Do(checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: key}}, func(_ checkpoint.Entry, err error) { done(err) })
}

func (c *calls) Mark(e checkpoint.Entry, done func(checkpoint.Entry, error)) {
	c.l.Do(checkpoint.Change{Kind: checkpoint.Mark, Entry: e}, done)
}

func (c *calls) Settle(e checkpoint.Entry, done func(checkpoint.Entry, error)) {
	c.l.Do(checkpoint.Change{Kind: checkpoint.Settle, Entry: e}, done)
}

func (c *calls) Note(s checkpoint.Shape) { c.shape = &s }

func (c *calls) MayLack(e *checkpoint.Entry) bool { return c.info.MayLack(e) }

func (c *calls) Hurry() {}
