package group

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// GR-5: ListGroups, by state and type.
func TestListFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.alone("stable")
		k.want(k.alone("empty").leave(), nil)
		k.want(k.commit("simple", 0, 1), nil)
		k.member("preparing").start()
		k.want(k.member("completing").join(), nil)
		waiting := k.member("preparing").start()
		list := func(f ListFilter) string {
			var names []string
			for _, l := range k.List(f) {
				names = append(names, l.Group+"/"+l.State+"/"+l.ProtocolType+"/"+l.Type)
			}
			return strings.Join(names, " ")
		}
		all := "completing/CompletingRebalance/consumer/classic empty/Empty/consumer/classic preparing/CompletingRebalance/consumer/classic " +
			"simple/Empty//classic stable/Stable/consumer/classic"
		all = strings.Replace(all, "preparing/Completing", "preparing/Preparing", 1)
		for _, c := range []struct {
			f    ListFilter
			want string
		}{
			{ListFilter{}, all},
			{ListFilter{Types: []string{"consumer", "CLASSIC"}}, all},
			{ListFilter{Types: []string{"consumer", "share"}}, ""},
			{ListFilter{States: []string{" stable ", "Nonsense"}}, "stable/Stable/consumer/classic"},
			{ListFilter{States: []string{"empty"}, Types: []string{"Classic"}}, "empty/Empty/consumer/classic simple/Empty//classic"},
			{ListFilter{States: []string{"dead"}}, ""},
		} {
			if got := list(c.f); got != c.want {
				t.Errorf("%+v:\n got %s\nwant %s", c.f, got, c.want)
			}
		}
		<-waiting
	})
}

// GR-5: DescribeGroups tells of protocol and metadata while a group is stable.
func TestDescribeIsByState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		d, err := k.Describe("g")
		if msg := kafka.ErrorMessage(err); d.State != "Dead" || d.Group != "g" || msg == nil || *msg != "Group g not found." {
			t.Errorf("%+v, %v", d, err)
		}
		k.want(err, kerr.GroupIDNotFound)
		m := k.alone("g")
		d, err = k.Describe("g")
		if err != nil || d.State != "Stable" || d.Protocol != "range" || d.ProtocolType != "consumer" || len(d.Members) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		if got := d.Members[0]; got.MemberID != m.id || got.InstanceID != nil || len(got.Metadata) != 13 || string(got.Assignment) != m.id ||
			!strings.HasPrefix(m.id, "client-") || len(m.id) != len("client-")+36 {
			t.Errorf("%+v", got)
		}
		if err := m.join(); err != nil {
			t.Fatal(err)
		}
		d, err = k.Describe("g")
		if err != nil || d.State != "CompletingRebalance" || d.Protocol != "" || d.ProtocolType != "consumer" || d.Members[0].Metadata != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// GR-5: DeleteGroups takes the offsets too, durably; what can't be written is as before.
func TestDeleteGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		for _, g := range []string{"a", "b", ""} {
			k.want(k.commit(g, 0, 1), nil)
		}
		m := k.alone("a")
		check := func(want ...error) {
			t.Helper()
			got := k.Delete(t.Context(), []string{"a", "other", "b", "b", ""})
			for i, err := range got {
				k.want(err, want[i])
			}
		}
		synctest.Wait()
		k.failing(full)
		check(kerr.NonEmptyGroup, kerr.GroupIDNotFound, kerr.NotCoordinator, kerr.GroupIDNotFound, kerr.NotCoordinator)
		if got := k.committed("b", 0); got != 1 || k.state("b") != "Empty" || k.state("") != "Empty" {
			t.Errorf("offset %d, %s", got, k.state("b"))
		}
		k.fail.Store(nil)
		check(kerr.NonEmptyGroup, kerr.GroupIDNotFound, nil, kerr.GroupIDNotFound, nil)
		k.want(m.leave(), nil)
		check(nil, kerr.GroupIDNotFound, kerr.GroupIDNotFound, kerr.GroupIDNotFound, kerr.GroupIDNotFound)
		after := k.cut()
		if got := after.List(ListFilter{}); len(got) > 0 || after.committed("a", 0) != -1 || after.committed("", 0) != -1 {
			t.Errorf("%+v", got)
		}
		// The name is free: what is committed now stays.
		k.want(k.commit("a", 0, 2), nil)
		if after := k.cut(); after.committed("a", 0) != 2 {
			t.Error("the new group's offset is gone")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		k.want(k.Delete(gone, []string{"a"})[0], kerr.NotCoordinator)
	})
}

// A member id that was given out is gone with its group.
func TestADeletedGroupForgetsIDsGivenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		m := k.member("g")
		r := <-m.request()
		k.want(r.Err, kerr.MemberIDRequired)
		k.want(k.Delete(t.Context(), []string{"g"})[0], nil)
		m.id = r.MemberID
		k.want((<-m.request()).Err, kerr.UnknownMemberID)
		pass(m.session + 1)
		if names := k.List(ListFilter{}); slices.ContainsFunc(names, func(l Listed) bool { return l.Group == "g" }) {
			t.Errorf("%+v", names)
		}
	})
}
