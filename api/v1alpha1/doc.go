// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the first version of the API group workitem.dev: a
// WorkItem with a due time, the NotificationProvider that says where a
// notification goes, and the NotificationOutbox that is one notification on its
// way.
//
// The package holds types, the names that users and other programs rely on, and
// nothing that decides: every rule lives in internal/overdue, internal/outbox
// and internal/claim.
//
// +kubebuilder:object:generate=true
// +groupName=workitem.dev
package v1alpha1
