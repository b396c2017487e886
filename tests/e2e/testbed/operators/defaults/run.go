// Prints each object of standard input as its operator's own webhook returns it when it is created,
// with the argument "convert" as its conversion webhook returns it in another version.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
)

// The conversion of an operator that has one.
var convert func(kind string, data []byte) any

// must returns the value, or ends the program with the error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// read fills obj with the JSON and returns it.
func read[T any](data []byte, obj T) T {
	return must(obj, json.Unmarshal(data, obj))
}

func main() {
	answer := complete
	if len(os.Args) > 1 {
		answer = convert
	}
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		data := json.RawMessage{}
		err := input.Decode(&data)
		if errors.Is(err, io.EOF) {
			return
		}
		head := read(must(data, err), &struct{ APIVersion, Kind string }{})
		must(data, output.Encode(answer(head.APIVersion+" "+head.Kind, data)))
	}
}
