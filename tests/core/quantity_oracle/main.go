// Quantity-oracle tells how Kubernetes reads quantities: one JSON string per line in, one answer out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// An answer is "err", or the value as an exact decimal without exponent and its canonical text.
func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Fprintln(out, "err")
			continue
		}
		canonical := quantity.DeepCopy()
		fmt.Fprintln(out, quantity.AsDec().String(), canonical.String())
	}
}
