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
	var given [][2]json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	for _, vector := range given {
		var endpoint string
		if err := json.Unmarshal(vector[0], &endpoint); err != nil {
			log.Fatal(err)
		}
		fmt.Print(stringToSign(endpoint, vector[1]), "\x00", sign(endpoint, vector[1]), "\x00")
	}
}
