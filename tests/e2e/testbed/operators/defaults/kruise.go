package main

import (
	"github.com/openkruise/kruise/apis/apps/defaults"
	"github.com/openkruise/kruise/apis/apps/v1alpha1"
	"github.com/openkruise/kruise/apis/apps/v1beta1"
)

// The webhook completes StatefulSets of the older version as ones of the newer.
func complete(kind string, data []byte) any {
	switch kind {
	case "apps.kruise.io/v1alpha1 CloneSet":
		obj := read(data, &v1alpha1.CloneSet{})
		defaults.SetDefaultsCloneSet(obj, true)
		return obj
	case "apps.kruise.io/v1alpha1 StatefulSet":
		older, newer := read(data, &v1alpha1.StatefulSet{}), &v1beta1.StatefulSet{}
		must(newer, older.ConvertTo(newer))
		defaults.SetDefaultsStatefulSet(newer, true)
		return must(older, older.ConvertFrom(newer))
	}
	obj := read(data, &v1beta1.StatefulSet{})
	defaults.SetDefaultsStatefulSet(obj, true)
	return obj
}

func init() {
	convert = func(kind string, data []byte) any {
		older, newer := &v1alpha1.StatefulSet{}, &v1beta1.StatefulSet{}
		if kind == "apps.kruise.io/v1alpha1 StatefulSet" {
			return must(newer, read(data, older).ConvertTo(newer))
		}
		return must(older, older.ConvertFrom(read(data, newer)))
	}
}
