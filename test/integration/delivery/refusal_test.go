// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// refusal is what the API server is made to say.
const refusal = "exceeded quota: team-quota, requested: count=1, used: count=10, limited: count=10"

// refuse has the API server refuse to create some objects of a resource in the
// test's namespace, as a quota would, and returns once it does.
func refuse(env *framework.Env, group, resource, expression string, probe client.Object) {
	env.T.Helper()
	name := "refuse-" + env.Namespace
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: refusal}},
		},
	}
	env.Create(policy)
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": env.Namespace}},
			},
		},
	}
	env.Create(binding)
	env.T.Cleanup(func() {
		ctx, stop := framework.Afterwards()
		defer stop()
		for _, obj := range []client.Object{binding, policy} {
			if err := env.Client.Delete(ctx, obj); err != nil {
				env.T.Error("removing the refusal:", err)
			}
		}
	})
	env.Eventually("the API server refuses", framework.Later, func() error {
		err := env.Client.Create(env.T.Context(), probe.DeepCopyObject().(client.Object), client.DryRunAll)
		if err == nil {
			return errors.New("it does not")
		}
		if !strings.Contains(err.Error(), refusal) {
			return err
		}
		return nil
	})
}

func TestRefusal_OfAnOutboxIsACondition(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	probe := recordedLater(env, "refused-probe")
	refuse(env, v1alpha1.GroupVersion.Group, "notificationoutboxes", "!object.spec.workItemRef.name.startsWith('refused')", probe)
	m := env.StartManager()
	env.Item("refused", framework.Notify("ops"))
	item := env.EventuallyItem("refused", "Stalled", framework.Soon, func(it *v1alpha1.WorkItem) bool {
		return framework.Condition(it, v1alpha1.ConditionStalled).Reason == v1alpha1.ReasonOutboxRefused
	})
	if c := framework.Condition(item, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, refusal) {
		t.Errorf("the condition Ready is %+v, want the API server's words", c)
	}
	if item.Status.Phase != v1alpha1.PhaseOverdue || item.Status.Notifications[0].Phase != v1alpha1.NotificationRecorded {
		t.Errorf("the item is %+v", item.Status)
	}
	if ev := env.EventuallyEvent(v1alpha1.KindWorkItem, "refused", v1alpha1.ReasonOutboxRefused); ev.Type != "Warning" {
		t.Errorf("the Event is %s", ev.Type)
	}
	env.Item("accepted", framework.Notify("ops"))
	env.Reported("accepted", v1alpha1.NotificationSent, 1)
	if n := len(m.Wire.Requests(createOutbox.And(framework.BodyHas(`"name":"refused"`)))); n > 2 {
		t.Errorf("the create was tried %d times within seconds, want a slow retry", n)
	}
	if lines := m.ErrorLog(); len(lines) != 0 {
		t.Errorf("a refusal was logged as an error: %v", lines)
	}
	wantCalls(t, provider, 1, 1)
}

// recordedLater is an outbox that may be created, as far as its schema goes.
func recordedLater(env *framework.Env, item string) *v1alpha1.NotificationOutbox {
	it := env.NewItem(item)
	it.UID = "11111111-2222-3333-4444-555555555555"
	return desired(env, it, 1)
}

func TestRefusal_OfAClaimIsACondition(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	m := env.StartManager()
	refused := m.Wire.Inject(createLease, 0, framework.FailWith(403))
	env.Item("report", framework.Notify("ops"))
	ob := env.OutboxOf("report", "ops")
	env.EventuallyOutbox(ob.Name, "the claim is refused", framework.Soon, framework.Because(v1alpha1.ReasonClaimRefused))
	env.Stays("the retry is slow", framework.MinLease, func() error {
		if n := refused.Hits(); n > 2 {
			return errors.New("the claim is tried again and again")
		}
		return nil
	})
	wantCalls(t, provider, 0, 0)
	refused.Remove()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if ob = env.GetOutbox(ob.Name); ob.Status.Attempts != 1 {
		t.Errorf("a refused claim was counted: %d attempts", ob.Status.Attempts)
	}
	wantCalls(t, provider, 1, 1)
}
