// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	_ "embed" // for the contract
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/workitem-operator/workitem-operator/internal/access"
)

const (
	// Path is where a pass is asked for.
	Path = "/v1/overdue:process"
	// ContractPath is where the contract is served.
	ContractPath = "/openapi.yaml"
	// Verb is what a caller must be allowed to do with the resource workitems.
	Verb = "process"
)

// Contract is the OpenAPI 3.1 document of the trigger.
//
//go:embed openapi.yaml
var Contract []byte

// Result is the answer to a pass.
type Result struct {
	// ProcessedCount is how many items this pass moved on: it committed their
	// transition, and no other pass did.
	ProcessedCount int `json:"processedCount"`
	// NotificationCount is how many notifications these transitions recorded.
	NotificationCount int `json:"notificationCount"`
	// FailedNotificationWorkItemIDs are the items, as namespace/name and in order, of
	// which a notification failed, could not be recorded, or is still on its way when the
	// wait is over. It is never null.
	FailedNotificationWorkItemIDs []string `json:"failedNotificationWorkItemIds"`
}

// Passer makes passes.
type Passer interface {
	// Pass makes a pass over the due items of a namespace, of all if it is empty, and
	// waits for the ends of the notifications for at most as long as wait. An error says
	// that the pass was not finished.
	Pass(ctx context.Context, namespace string, wait time.Duration) (Result, error)
}

// Reviewer judges callers.
type Reviewer interface {
	// Authenticate finds out who makes a request.
	Authenticate(ctx context.Context, req *http.Request) (authenticationv1.UserInfo, error)
	// Authorize finds out whether somebody may do something.
	Authorize(ctx context.Context, user authenticationv1.UserInfo, wanted access.Wanted) error
}

// handler answers requests.
type handler struct {
	passer   Passer
	reviewer Reviewer
	limits   *limits
	watched  []string
	log      logr.Logger
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case ContractPath:
		contract(w, req)
	case Path:
		result, refused := h.process(w, req)
		if refused != nil {
			refused.write(w)
			return
		}
		write(w, http.StatusOK, "application/json", result)
	default:
		refuse(http.StatusNotFound, "there is nothing here: POST "+Path+", or GET "+ContractPath).write(w)
	}
}

func contract(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(http.StatusMethodNotAllowed, "the contract can only be read: use GET").write(w)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(Contract)
}

// process makes a pass: what is cheap to refuse is refused first.
func (h *handler) process(w http.ResponseWriter, req *http.Request) (*Result, *problem) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, refuse(http.StatusMethodNotAllowed, "a pass changes items: use POST")
	}
	leave, refused := h.limits.enter(w)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	user, err := h.reviewer.Authenticate(req.Context(), req)
	if err != nil {
		return nil, h.unknown(w, err)
	}
	asked, refused := parse(w, req, h.watched)
	if refused != nil {
		return nil, refused
	}
	if refused := h.authorize(req.Context(), user, asked.namespace); refused != nil {
		return nil, refused
	}
	result, err := h.passer.Pass(req.Context(), asked.namespace, asked.wait)
	if err != nil {
		h.log.Info("Pass was not finished", "user", user.Username, "namespace", asked.namespace, "cause", err.Error())
		return nil, refuse(http.StatusServiceUnavailable, "the pass was not finished; nothing is lost, and the schedule or another call goes on from here")
	}
	if result.FailedNotificationWorkItemIDs == nil {
		result.FailedNotificationWorkItemIDs = []string{}
	}
	h.log.Info("Made a pass", "user", user.Username, "namespace", asked.namespace, "processed", result.ProcessedCount,
		"notifications", result.NotificationCount, "failed", len(result.FailedNotificationWorkItemIDs))
	return &result, nil
}

// unknown is the answer to a caller whom nobody knows, or could be asked about.
func (h *handler) unknown(w http.ResponseWriter, err error) *problem {
	if errors.Is(err, access.ErrUnauthenticated) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return refuse(http.StatusUnauthorized, "send Authorization: Bearer and a token that the API server accepts, such as that of kubectl create token")
	}
	return h.cannotAsk(err)
}

func (h *handler) cannotAsk(err error) *problem {
	h.log.Info("Could not review a caller", "cause", err.Error())
	return refuse(http.StatusServiceUnavailable, "the API server cannot be asked who you are; try again")
}

// authorize asks for the right in the namespace. Without one it is asked for all
// namespaces, or for each that is looked after.
func (h *handler) authorize(ctx context.Context, user authenticationv1.UserInfo, namespace string) *problem {
	namespaces := []string{namespace}
	if namespace == "" && len(h.watched) > 0 {
		namespaces = h.watched
	}
	for _, ns := range namespaces {
		err := h.reviewer.Authorize(ctx, user, access.Wanted{Resource: &authorizationv1.ResourceAttributes{
			Namespace: ns, Verb: Verb, Group: "workitem.dev", Version: "v1alpha1", Resource: "workitems",
		}})
		switch {
		case errors.Is(err, access.ErrForbidden) && ns == "":
			return refuse(http.StatusForbidden, `the verb "process" on workitems.workitem.dev is needed in all namespaces; with the right in one, name it as ?namespace=`)
		case errors.Is(err, access.ErrForbidden):
			return refuse(http.StatusForbidden, `the verb "process" on workitems.workitem.dev is needed in namespace `+ns)
		case err != nil:
			return h.cannotAsk(err)
		}
	}
	return nil
}
