// Command leadferry carries leads from spreadsheets into a lead-management service,
// once each, and keeps their status in step with a CRM afterwards.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"leadferry/internal/cli"
	"leadferry/internal/cli/signals"
)

func main() {
	if cli.Completes(os.Args, os.Stdout) { // first, because a half-typed command must not start anything
		return
	}
	if code, is := cli.ChecksFile(os.Args, os.Stdout); is {
		os.Exit(code)
	}
	signals.CrashApart()
	received := make(chan os.Signal, 4)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup stays nohup
		signal.Notify(received, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not kill it between an answer and its record
	ctx, interrupt := signals.Watch(received)
	os.Exit(cli.Run(ctx, interrupt, os.Args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
