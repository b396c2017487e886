package main

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Takes the places that rules name out of both sides of a comparison, by the jq that Argo CD uses.
type ignored []*gojq.Query

func ignoring(options []string) (ignored, error) {
	var rules ignored
	for _, option := range options {
		place, is := strings.CutPrefix(option, "ignore=")
		if !is {
			continue
		}
		rule, err := gojq.Parse("del(" + place + ")")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// Normalize is what gitops-engine asks for each side.
func (rules ignored) Normalize(side *unstructured.Unstructured) error {
	for _, rule := range rules {
		found, _ := rule.Run(plain(side.Object)).Next()
		left, is := found.(map[string]any)
		if !is {
			return fmt.Errorf("%s leaves %v", rule, found)
		}
		side.Object = left
	}
	return nil
}

// jq knows no int64.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, inner := range value {
			copied[key] = plain(inner)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for index, inner := range value {
			copied[index] = plain(inner)
		}
		return copied
	case int64:
		return float64(value)
	}
	return value
}
