//go:build !unix

package main

import "os/exec"

func asServerUser(*exec.Cmd) {}

func giveAway(string) error { return nil }
