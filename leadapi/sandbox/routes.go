package sandbox

import (
	"net/http"
	"strings"
)

// endpoint is one entry of "Endpoints".
type endpoint struct {
	kind, method string
	path         string // up to the path parameter, when it ends in a slash
	query        bool   // has parameters in its query
	bearer       use    // the token that it asks for
	serve        func(*Server, call) (answer, error)
}

// call is one request at its endpoint.
type call struct {
	*http.Request
	tail string // the path parameter
	body []byte
}

var endpoints = []endpoint{
	{kind: "create", method: http.MethodPost, path: "/v1/", bearer: accessUse, serve: (*Server).create},
	{kind: "update", method: http.MethodPatch, path: "/v3/lead/", bearer: accessUse, serve: (*Server).update},
	{kind: "token", method: http.MethodPost, path: "/v3/oauth2/token", query: true, serve: (*Server).token},
	{kind: "login", method: http.MethodPost, path: "/v3/oauth2/login", serve: (*Server).login},
	{kind: "client", method: http.MethodPost, path: "/v3/oauth2/client", bearer: loginUse, serve: (*Server).client},
}

// route finds the endpoint of a request. An endpoint of the kind other comes with an error.
func (s *Server) route(r *http.Request) (endpoint, string, error) {
	path := r.URL.EscapedPath()
	for _, e := range endpoints {
		tail, found := strings.CutPrefix(path, e.path)
		switch {
		case !found || (tail != "") != strings.HasSuffix(e.path, "/"):
		case r.Method != e.method:
			return endpoint{kind: "other"}, "", &refusal{
				status: http.StatusMethodNotAllowed, code: http.StatusText(http.StatusMethodNotAllowed),
				reason: "this address takes " + e.method, allow: e.method,
			}
		default:
			return e, tail, nil
		}
	}
	return endpoint{kind: "other"}, "", refuse(http.StatusNotFound, "there is nothing at this address")
}

// handle checks what all endpoints have in common, and serves the request.
func (s *Server) handle(e endpoint, r *http.Request, tail string, body []byte) (answer, error) {
	if e.bearer != "" {
		if err := s.authority.admit(r, e.bearer); err != nil {
			return answer{}, err
		}
	}
	if !e.query && (r.URL.RawQuery != "" || r.URL.ForceQuery) {
		return answer{}, refuse(http.StatusBadRequest, "this address takes no query")
	}
	return e.serve(s, call{r, tail, body})
}
