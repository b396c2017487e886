// Quantity-oracle reports how Kubernetes reads quantities: one JSON value per line in, one answer out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// read decodes one JSON value as a typed object does. A text is encoded by Go first, as the API
// server encodes what it sends to webhooks and operators: UnmarshalJSON sees escapes as they are.
func read(line []byte) (resource.Quantity, error) {
	var quantity resource.Quantity
	var text string
	if json.Unmarshal(line, &text) == nil {
		encoded, err := json.Marshal(text)
		if err != nil {
			return quantity, err
		}
		line = encoded
	}
	err := quantity.UnmarshalJSON(line)
	return quantity, err
}

// An answer is "err", or a whole number and the power of ten to divide it by.
func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		quantity, err := read(lines.Bytes())
		if err != nil {
			fmt.Fprintln(out, "err")
			continue
		}
		value := quantity.AsDec()
		fmt.Fprintln(out, value.UnscaledBig(), value.Scale())
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
