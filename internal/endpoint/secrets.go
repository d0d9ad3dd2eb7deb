// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

const (
	// maxAge is how old a value may be when it is used.
	maxAge = 2 * time.Second
	// keep is how long a value that nobody asks for stays in memory; it is dropped when
	// another Secret is first read after that.
	keep = 10 * time.Second
)

// secrets reads Secrets and shares what several calls within two seconds read.
type secrets struct {
	api   client.Reader
	clock clock.PassiveClock

	mu   sync.Mutex
	read map[types.NamespacedName]*reading
}

// reading is one read of one Secret. Whoever holds mu reads, the others wait for it.
type reading struct {
	mu      sync.Mutex
	at      time.Time
	secret  secretValue
	problem *Problem
}

type secretValue struct {
	data    map[string][]byte
	version string
}

func (s *secrets) get(ctx context.Context, key types.NamespacedName, fresh Freshness) (secretValue, error) {
	r := s.reading(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.clock.Now()
	if fresh == Now || r.at.IsZero() || now.Sub(r.at) >= maxAge {
		if err := s.fetch(ctx, key, r, now); err != nil {
			return secretValue{}, err
		}
	}
	if r.problem != nil {
		return secretValue{}, r.problem
	}
	return r.secret, nil
}

// fetch reads a Secret. Its age counts from before the request.
func (s *secrets) fetch(ctx context.Context, key types.NamespacedName, r *reading, now time.Time) error {
	secret := &corev1.Secret{}
	err := s.api.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		r.secret = secretValue{}
		r.problem = &Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: fmt.Sprintf("waiting for the Secret %s to be created", key.Name)}
	case apierrors.IsForbidden(err):
		r.secret = secretValue{}
		r.problem = &Problem{Reason: v1alpha1.ReasonSecretForbidden, Message: fmt.Sprintf("the operator may not read the Secret %s", key.Name)}
	case err != nil:
		return fmt.Errorf("reading Secret %s: %w", key.Name, err)
	default:
		r.secret, r.problem = secretValue{data: secret.Data, version: secret.ResourceVersion}, nil
	}
	r.at = now
	return nil
}

func (s *secrets) reading(key types.NamespacedName) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read = map[types.NamespacedName]*reading{}
	}
	r, ok := s.read[key]
	if !ok {
		s.drop()
		r = &reading{}
		s.read[key] = r
	}
	return r
}

// drop forgets what nobody has asked for lately. A reading that is under way is
// not touched.
func (s *secrets) drop() {
	now := s.clock.Now()
	for key, r := range s.read {
		if !r.mu.TryLock() {
			continue
		}
		if !r.at.IsZero() && now.Sub(r.at) > keep {
			delete(s.read, key)
		}
		r.mu.Unlock()
	}
}
