package conjurd

import "slices"

// routes lists all routes. The first match applies.
var routes = slices.Concat(apiRoutes, authenticatorRoutes(), v2Routes())

// v2Routes returns the routes of the newer API that conjurd lacks, each of which says so.
func v2Routes() (all []route) {
	for pattern, methods := range map[string][]string{
		"branches/:account":                      {"GET", "POST"},
		"branches/:account/*id":                  {"GET", "PATCH", "DELETE"},
		"groups/:account/*id":                    {"POST", "DELETE"},
		"authenticators/:account":                {"GET", "POST"},
		"authenticators/:account/:type/:service": {"GET", "PATCH", "DELETE"},
	} {
		for _, method := range methods {
			all = append(all, at(method, pattern, (*Server).notServed))
		}
	}
	return all
}

// authenticatorRoutes returns the routes that all authenticators share.
func authenticatorRoutes() (all []route) {
	for kind := range settings {
		pattern := string(kind) + "/:service/:account"
		if kind == authnGCP {
			pattern = string(kind) + "/:account"
		}
		for _, r := range []route{at("GET", pattern+"/status", kind.status), at("PATCH", pattern, kind.enable)} {
			r.ours = kind.ours()
			all = append(all, r)
		}
	}
	return all
}

var apiRoutes = []route{
	at("GET", "", (*Server).status).open(),
	at("GET", "health", (*Server).health).open().extra(),
	at("GET", "authn/:account/login", (*Server).login).open(),
	at("POST", "authn/:account/:login/authenticate", (*Server).authenticate).open(),
	at("PUT", "authn/:account/api_key", (*Server).rotateKey).open(),
	at("GET", "authn/:account/api_key", (*Server).keyRotated).open(),
	at("PUT", "authn/:account/password", (*Server).setPassword).open(),
	at("POST", "authn-jwt/:service/:account/authenticate", (*Server).authenticateJWT).open(),
	at("POST", "authn-jwt/:service/:account/:login/authenticate", (*Server).authenticateJWT).open(),
	at("POST", "authn-iam/:service/:account/:login/authenticate", (*Server).authenticateIAM).open(),
	at("POST", "authn-azure/:service/:account/:login/authenticate", (*Server).authenticateAzure).open(),
	at("POST", "authn-gcp/:account/authenticate", (*Server).authenticateGCP).open(),
	at("POST", "authn-cert/:service/:account/authenticate", (*Server).authenticateCert).open().extra(),
	at("POST", "authn-cert/:service/:account/:login/authenticate", (*Server).authenticateCert).open().extra(),
	at("POST", "authn-k8s/:service/inject_client_cert", (*Server).injectClientCert).open(),
	at("POST", "authn-k8s/:service/:account/:login/authenticate", (*Server).authenticateK8s).open(),
	at("GET", "authenticators", (*Server).listAuthenticators).open(),
	at("GET", "whoami", (*Server).whoami),
	at("GET", "secrets", (*Server).getSecrets),
	at("GET", "secrets/:account/variable/*id", (*Server).getSecret),
	at("POST", "secrets/:account/variable/*id", (*Server).setSecret),
	at("POST", "secrets/values", (*Server).getValues).extra(),
	at("POST", "secrets/:account/values", (*Server).getValues).extra(),
	at("PUT", "secrets/:account/values", (*Server).setValues).extra(),
	at("GET", "resources", (*Server).listResources),
	at("GET", "resources/:account", (*Server).listResources),
	at("GET", "resources/:account/:kind", (*Server).listResources),
	at("GET", "resources/:account/:kind/*id", (*Server).showResource),
	at("GET", "roles/:account/:kind/*id", (*Server).showRole),
	at("POST", "roles/:account/:kind/*id", (*Server).addMember),
	at("DELETE", "roles/:account/:kind/*id", (*Server).deleteMember),
	at("POST", "host_factory_tokens", (*Server).createFactoryTokens),
	at("DELETE", "host_factory_tokens/:token", (*Server).deleteFactoryToken),
	at("POST", "host_factories/hosts", (*Server).createHost).open(),
	at("GET", "public_keys/:account/:kind/*id", (*Server).publicKeys),
	at("GET", "policies/:account/policy/*id", (*Server).showPolicy),
	at("POST", "policies/:account/policy/*id", (*Server).loadPolicy),
	at("PATCH", "policies/:account/policy/*id", (*Server).loadPolicy),
	at("PUT", "policies/:account/policy/*id", (*Server).loadPolicy),
}
