// Receive callbacks and returning payers. Put merchant.go into the same folder: go run merchant.go receiver.go 9000
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

var seen sync.Map // in your shop: a unique column

func init() {
	run = receive
}

func receive() {
	http.HandleFunc("/", take)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}

func take(response http.ResponseWriter, request *http.Request) {
	if request.Method == "GET" {
		greet(response, request)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil || !verified(request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct {
		Type string
		Data struct {
			OrderNo string `json:"order_no"`
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, before := seen.LoadOrStore(request.Header.Get("webhook-id"), true); !before {
		fmt.Println(event.Type, event.Data.OrderNo)
	}
	response.WriteHeader(http.StatusNoContent)
}

// A payer returns: show the order, and credit it on the callback.
func greet(response http.ResponseWriter, request *http.Request) {
	fields := request.URL.Query()
	if !verifiedReturn(fields) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Println("return", fields.Get("order_no"), fields.Get("status"))
}
