package main

// clientBugs are mistakes in the client. It does without net/http's transport, so what that does by itself is put in
// as code that does the same.
func clientBugs() []bug {
	return []bug{
		{
			number: 4, name: "GetBody left together with HTTP/2 on", imitates: "m1, m2, fault 41: one call becomes thousands of POSTs where the peer resets its stream",
			edits: []edit{{
				"leadapi/leadapi.go", "\tstatus, fault := c.carry(",
				"\tif r.host.tls != nil {\n\t\treturn c.doOverHTTP2(ctx, r, read)\n\t}\n\tstatus, fault := c.carry(",
			}},
			adds:   []added{{"leadapi/http2.go", "http2.go.txt"}},
			checks: []check{{"leadapi", []string{"TestHTTP2PeerIsSpokenToWithHTTP1"}}},
		},
		{
			number: 5, name: "refresh token not kept", imitates: "fault 72: the first refresh token is used on, the one that came in its place is lost",
			edits: []edit{{
				"leadapi/token.go", "k.token, k.state, k.renewAt, k.refresh = token, state, renewAt(token), token.RefreshToken",
				"if k.refresh == \"\" {\n\t\t\tk.refresh = token.RefreshToken\n\t\t}\n\t\tk.token, k.state, k.renewAt = token, state, renewAt(token)",
			}},
			checks: []check{{"leadapi", []string{"TestNewestRefreshTokenIsUsed"}}},
		},
		{
			number: 8, name: "query in errors", imitates: "m10, fault 111: the address of a failed token request, with the secret in it, stands in its error",
			edits: []edit{{
				"leadapi/error.go", `"the connection broke before a readable answer came"`,
				`"the connection broke before a readable answer came from " + r.target`,
			}},
			checks: []check{{"leadapi", []string{"TestNoErrorHoldsASecret"}}},
		},
		{
			number: 9, name: "redirect followed", imitates: "m11, m12, m13, fault 50: a person's data and the token go wherever the answer says",
			edits: []edit{
				{"leadapi/leadapi.go", "type request struct {\n", "type request struct {\n\thops    int\n"},
				{
					"leadapi/leadapi.go", "\tfault = c.answered(r, a)\n",
					"\tif next, ok := redirected(r, a.Response); ok {\n\t\treturn c.do(ctx, next, read)\n\t}\n\tfault = c.answered(r, a)\n",
				},
			},
			adds:   []added{{"leadapi/redirect.go", "redirect.go.txt"}},
			checks: []check{{"leadapi", []string{"TestRedirectsAreNeverFollowed"}}},
		},
		{
			number: 10, name: "refresh per worker", imitates: "fault 71: as many renewals as workers when the token expires",
			edits:  []edit{{"leadapi/token.go", "ended > renewals {\n", "ended < renewals {\n"}},
			checks: []check{{"leadapi", []string{"TestTokenIsRenewedOnceForAllWorkers", "TestRenewalIsShared"}}},
		},
		{
			number: 18, name: "Idempotency-Key set", imitates: "m4: whoever lies between may send a request again that has such a key",
			edits: []edit{{
				"leadapi/leadapi.go", "\tif r.bearer != \"\" {\n",
				"\tif r.method == \"POST\" {\n\t\tb = strconv.AppendInt(append(b, \"\\r\\nIdempotency-Key: \"...), time.Now().UnixNano(), 36)\n\t}\n\tif r.bearer != \"\" {\n",
			}},
			checks: []check{{"leadapi", []string{"TestHeads"}}},
		},
	}
}
