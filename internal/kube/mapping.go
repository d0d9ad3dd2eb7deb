// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ByIndex maps an object to those of its namespace that an index lists under its name.
// newList makes an empty list of their kind.
func ByIndex(reader client.Reader, newList func() client.ObjectList, index string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		list := newList()
		err := reader.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: obj.GetName()})
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if found, ok := item.(client.Object); ok {
					out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(found)})
				}
				return nil
			})
		}
		if err != nil {
			logf.FromContext(ctx).Error(err, "Cannot list what an event is about", "index", index)
			return nil
		}
		return out
	}
}
