package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
)

func init() {
	run = vectors
}

func vectors() {
	var given [][2]any
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		log.Fatal(err)
	}
	for _, vector := range given {
		text, err := stringToSign(vector[0].(string), vector[1].(object))
		if err != nil {
			log.Fatal(err)
		}
		signature, _ := sign(vector[0].(string), vector[1].(object))
		fmt.Print(text, "\x00", signature, "\x00")
	}
}
