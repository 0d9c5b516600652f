//go:build gocql1

package main

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/gocql/gocql"
	"gopkg.in/inf.v0"
)

// What gocql 1.7 has under these names.
type (
	Session       = gocql.Session
	Cluster       = gocql.ClusterConfig
	UUID          = gocql.UUID
	BatchKind     = gocql.BatchType
	Duration      = gocql.Duration
	RequestError  = gocql.RequestError
	AlreadyExists = gocql.RequestErrAlreadyExists
	SslOptions    = gocql.SslOptions
	Password      = gocql.PasswordAuthenticator
	Decimal       = inf.Dec
)

// A vector of floats, which this version doesn't know.
type Vector []float32

func (v Vector) MarshalCQL(gocql.TypeInfo) (out []byte, err error) {
	for _, element := range v {
		out = binary.BigEndian.AppendUint32(out, math.Float32bits(element))
	}
	return out, nil
}

func (v *Vector) UnmarshalCQL(_ gocql.TypeInfo, data []byte) error {
	for *v = nil; len(data) >= 4; data = data[4:] {
		*v = append(*v, math.Float32frombits(binary.BigEndian.Uint32(data)))
	}
	return nil
}

const (
	logged       = gocql.LoggedBatch
	unlogged     = gocql.UnloggedBatch
	counterKind  = gocql.CounterBatch
	serial       = gocql.Serial
	name         = "gocql1"
	vectorsOfAll = false
)

var (
	newCluster = gocql.NewCluster
	timeUUID   = gocql.TimeUUID
	randomUUID = gocql.MustRandomUUID
	newDecimal = inf.NewDecBig
	scaleOf    = func(scale int) inf.Scale { return inf.Scale(scale) }
)

// This version has numbers for most errors.
func code(err error) int {
	var one gocql.RequestError
	if errors.As(err, &one) {
		return one.Code()
	}
	return 0
}

func isSyntax(err error) bool        { return code(err) == gocql.ErrCodeSyntax }
func isInvalid(err error) bool       { return code(err) == gocql.ErrCodeInvalid }
func isUnauthorized(err error) bool  { return code(err) == gocql.ErrCodeUnauthorized }
func isConfiguration(err error) bool { return code(err) == gocql.ErrCodeConfig }
