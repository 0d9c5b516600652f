//go:build !gocql1

package main

import (
	"errors"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"gopkg.in/inf.v0"
)

// What Apache's gocql 2 has under these names.
type (
	Session       = gocql.Session
	Cluster       = gocql.ClusterConfig
	UUID          = gocql.UUID
	BatchKind     = gocql.BatchType
	Duration      = gocql.Duration
	Vector        = []float32
	RequestError  = gocql.RequestError
	AlreadyExists = gocql.RequestErrAlreadyExists
	SslOptions    = gocql.SslOptions
	Password      = gocql.PasswordAuthenticator
	Decimal       = inf.Dec
)

const (
	logged      = gocql.LoggedBatch
	unlogged    = gocql.UnloggedBatch
	counterKind = gocql.CounterBatch
	serial      = gocql.Serial
	// Its name in the names that it makes.
	name = "gocql"
	// Whether it knows vectors of other elements, too.
	vectorsOfAll = true
)

var (
	newCluster = gocql.NewCluster
	timeUUID   = gocql.TimeUUID
	randomUUID = gocql.MustRandomUUID
	newDecimal = inf.NewDecBig
	scaleOf    = func(scale int) inf.Scale { return inf.Scale(scale) }
)

// Its classes of errors.
func isSyntax(err error) bool {
	var one *gocql.RequestErrSyntax
	return errors.As(err, &one)
}

func isInvalid(err error) bool {
	var one *gocql.RequestErrInvalid
	return errors.As(err, &one)
}

func isUnauthorized(err error) bool {
	var one *gocql.RequestErrUnauthorized
	return errors.As(err, &one)
}

func isConfiguration(err error) bool {
	var one *gocql.RequestErrConfig
	return errors.As(err, &one)
}
