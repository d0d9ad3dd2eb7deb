// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/controllers"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// Env is the world of one test: a namespace of its own, a client that no fault ever
// touches, and a gateway to scripted providers.
type Env struct {
	// T is the test.
	T *testing.T
	// Namespace is the test's own.
	Namespace string
	// Client reads from and writes to the API server directly.
	Client client.Client
	// Gateway is where the providers are.
	Gateway *Gateway
	// Journal is what happened.
	Journal *Journal

	managers int
}

var notInName = regexp.MustCompile("[^a-z0-9]+")

// New makes the world of a test. When the test fails, the states of all objects and
// the journal are printed.
func New(t *testing.T) *Env {
	t.Helper()
	if shared == nil {
		t.Fatal("TestMain does not call framework.Main")
	}
	c, err := client.New(shared.plane.Config(), client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal("making a client:", err)
	}
	e := &Env{T: t, Client: c, Journal: newJournal()}
	prefix := strings.Trim(notInName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("%.40s-", prefix)}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal("creating a namespace:", err)
	}
	e.Namespace = ns.Name
	e.Gateway = newGateway(t, e.Journal)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(e.state())
		}
	})
	return e
}

// state is what the objects of the test look like, and how it came to that.
func (e *Env) state() string {
	// The test's own context has ended when this is called.
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	var out strings.Builder
	for _, list := range []client.ObjectList{
		&v1alpha1.WorkItemList{}, &v1alpha1.NotificationProviderList{}, &v1alpha1.NotificationOutboxList{},
		&coordinationv1.LeaseList{}, &eventsv1.EventList{},
	} {
		if err := e.Client.List(ctx, list, client.InNamespace(e.Namespace), client.Limit(20)); err != nil {
			fmt.Fprintf(&out, "listing %T: %v\n", list, err)
			continue
		}
		fmt.Fprintf(&out, "--- %T\n%s\n", list, brief(list))
	}
	fmt.Fprintf(&out, "--- calls to paths without an endpoint: %v\n--- journal\n%s\n", e.Gateway.provider.Strays(), e.Journal)
	return out.String()
}

// brief is a list as YAML, without what nobody looks for.
func brief(list client.ObjectList) string {
	switch l := list.(type) {
	case *eventsv1.EventList:
		var out strings.Builder
		for _, ev := range l.Items {
			fmt.Fprintf(&out, "%s %s %s %s: %s\n", ev.Type, ev.Regarding.Kind, ev.Regarding.Name, ev.Reason, ev.Note)
		}
		return out.String()
	case *v1alpha1.NotificationOutboxList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	case *v1alpha1.WorkItemList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	case *v1alpha1.NotificationProviderList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	case *coordinationv1.LeaseList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	}
	raw, err := yaml.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Endpoint opens an endpoint of the scripted provider. Managers reach it at
// Gateway.URL("/" + name), which is what a provider of that name is given.
func (e *Env) Endpoint(name string, dialect deliverytest.Dialect, script deliverytest.Script) *deliverytest.Endpoint {
	return e.Gateway.provider.Endpoint("/"+name, dialect, script)
}
