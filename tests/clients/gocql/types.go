package main

import (
	"fmt"
	"math"
	"math/big"
	"net"
	"reflect"
	"strings"
	"time"
)

// A type with values of it.
type typed struct {
	cql    string
	values []any
}

type inner struct {
	A int      `cql:"a"`
	B []string `cql:"b"`
}

type outer struct {
	I inner         `cql:"i"`
	M map[int]inner `cql:"m"`
}

// Values of every type there and back at their edges.
func types(session *Session) {
	sure(session.Query("CREATE TYPE inner_t (a int, b list<text>)").Exec())
	sure(session.Query("CREATE TYPE outer_t (i frozen<inner_t>, m map<int, frozen<inner_t>>)").Exec())
	cases := append(natives(), collections()...)
	columns := ""
	for at, one := range cases {
		columns += fmt.Sprintf(", c%d %s", at, one.cql)
	}
	sure(session.Query("CREATE TABLE types (k int PRIMARY KEY" + columns + ")").Exec())
	failures := []string{}
	for at, one := range cases {
		for _, value := range one.values {
			if reason := comesBack(session, at, value); reason != "" {
				failures = append(failures, one.cql+": "+reason)
			}
		}
	}
	check(len(failures) == 0, "%s", strings.Join(failures, "; "))
}

func comesBack(session *Session, at int, value any) string {
	err := session.Query(fmt.Sprintf("INSERT INTO types (k, c%d) VALUES (1, ?)", at), value).Exec()
	if err != nil {
		return err.Error()
	}
	found := reflect.New(reflect.TypeOf(value))
	err = session.Query(fmt.Sprintf("SELECT c%d FROM types WHERE k = ?", at), 1).Scan(found.Interface())
	if err != nil {
		return err.Error()
	}
	// As text, so that NaN is equal to itself, and numbers of the same value are equal.
	expected, got := fmt.Sprintf("%+v", value), fmt.Sprintf("%+v", found.Elem().Interface())
	if expected != got {
		return fmt.Sprintf("%.60s came back as %.60s", expected, got)
	}
	return ""
}

func natives() []typed {
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(1000), nil)
	day := 24 * time.Hour
	return []typed{
		{"ascii", []any{"", "plain", "\x00\x7f"}},
		{"bigint", []any{int64(math.MinInt64), int64(0), int64(math.MaxInt64)}},
		{"blob", []any{[]byte{}, []byte{0, 255}, make([]byte, 100_000)}},
		{"boolean", []any{true, false}},
		{"date", []any{time.Unix(math.MinInt32*86400, 0).UTC(), time.Unix(0, 0).UTC(), time.Unix(math.MaxInt32*86400, 0).UTC()}},
		{"decimal", []any{newDecimal(big.NewInt(-150), scaleOf(2)), newDecimal(huge, scaleOf(2000)), newDecimal(big.NewInt(0), scaleOf(0))}},
		{"double", []any{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64}},
		{"duration", []any{Duration{}, Duration{Months: 14, Days: 3, Nanoseconds: 5}, Duration{Months: math.MaxInt32, Days: math.MaxInt32, Nanoseconds: math.MaxInt64},
			Duration{Months: -math.MaxInt32, Days: -math.MaxInt32, Nanoseconds: -math.MaxInt64}}},
		{"float", []any{float32(math.NaN()), float32(math.Inf(1)), float32(math.MaxFloat32), float32(math.SmallestNonzeroFloat32)}},
		{"inet", []any{net.ParseIP("0.0.0.0"), net.ParseIP("255.255.255.255"), net.ParseIP("::"), net.ParseIP("2001:db8::1")}},
		{"int", []any{math.MinInt32, 0, math.MaxInt32}},
		{"smallint", []any{int16(math.MinInt16), int16(math.MaxInt16)}},
		{"text", []any{"", "\x00 é 😀 'quoted'", strings.Repeat("x", 70_000)}},
		{"time", []any{time.Duration(0), day - 1}},
		{"timestamp", []any{time.UnixMilli(math.MinInt64).UTC(), time.Unix(0, 0).UTC(), time.UnixMilli(math.MaxInt64).UTC()}},
		{"timeuuid", []any{timeUUID()}},
		{"tinyint", []any{int8(math.MinInt8), int8(math.MaxInt8)}},
		{"uuid", []any{UUID{}, randomUUID()}},
		{"varint", []any{big.NewInt(0), huge, new(big.Int).Neg(huge), big.NewInt(-128), big.NewInt(128)}},
	}
}

func collections() []typed {
	one := inner{math.MinInt32, []string{"", "b"}}
	cases := []typed{
		{"list<int>", []any{[]int{1, 1, math.MinInt32}, []int{}}},
		{"set<text>", []any{[]string{"", "b"}}},
		{"map<text, bigint>", []any{map[string]int64{"": math.MinInt64, "b": 1}}},
		{"frozen<list<text>>", []any{[]string{}, []string{"", "b"}}},
		{"map<int, frozen<list<frozen<set<text>>>>>", []any{map[int][][]string{1: {{"", "a"}, {}}}}},
		{"frozen<inner_t>", []any{one, inner{}}},
		{"frozen<outer_t>", []any{outer{one, map[int]inner{1: one}}}},
		{"list<frozen<outer_t>>", []any{[]outer{{one, map[int]inner{}}}}},
		{"vector<float, 3>", []any{Vector{1, float32(math.NaN()), float32(math.Inf(-1))}}},
	}
	if vectorsOfAll {
		cases = append(cases, []typed{
			{"vector<bigint, 2>", []any{[]int64{math.MinInt64, math.MaxInt64}}},
			{"vector<text, 2>", []any{[]string{"", strings.Repeat("long ", 100)}}},
			{"list<frozen<vector<float, 2>>>", []any{[][]float32{{1, 2}}}},
		}...)
	}
	return cases
}
