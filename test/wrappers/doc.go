// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package wrappers builds the objects that tests need, one method for each field
// that matters to a test. Every object is one that the API server would admit
// until a method says otherwise. Nothing here decides anything.
package wrappers

import (
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// UID is a UID that depends on nothing but the words given, so that tests print
// the same thing every time.
func UID(words string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(words)).String())
}

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
