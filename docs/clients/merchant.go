// Client of Tillbook, to copy. Needs Go 1.19 or newer and the standard library only.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

var (
	baseURL        = setting("MERCHANT_URL", "http://127.0.0.1:8000") // with the API prefix, if there is one
	apiKey         = setting("MERCHANT_KEY", "demo")
	secret         = setting("MERCHANT_SECRET", "demo-secret")
	callbackSecret = setting("MERCHANT_CALLBACK_SECRET", "") // if empty, no callback is accepted
	client         = &http.Client{Timeout: 30 * time.Second, CheckRedirect: stay}
)

type object = map[string]any

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func leaves(value any, path string, found map[string]string) {
	prefix := path + "."
	if path == "" {
		prefix = ""
	}
	switch value := value.(type) {
	case object:
		for name, item := range value {
			leaves(item, prefix+name, found)
		}
	case []any:
		for index, item := range value {
			leaves(item, prefix+strconv.Itoa(index), found)
		}
	case nil:
	default: // a text, a json.Number or a bool
		if text := fmt.Sprint(value); text != "" {
			found[path] = text
		}
	}
}

// sent is the JSON of the request without the signature, so numbers are signed exactly as they are sent.
func stringToSign(endpoint string, sent []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(sent))
	decoder.UseNumber()
	var fields object
	decoder.Decode(&fields)
	found := map[string]string{}
	leaves(fields, "", found)
	paths := make([]string, 0, len(found))
	for path := range found {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		endpoint += "\n" + path + "=" + found[path]
	}
	return endpoint
}

func sign(endpoint string, sent []byte) string {
	return hex.EncodeToString(mac([]byte(secret), []byte(stringToSign(endpoint, sent))))
}

func mac(key, text []byte) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write(text)
	return hash.Sum(nil)
}

// Do not send a signed request to another address.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Return the response, also if it is a refusal. An error means no response: send the same request again with the same key.
func call(endpoint string, fields object, idempotencyKey string) (answer object, err error) {
	nonce := make([]byte, 16)
	if _, err = rand.Read(nonce); err != nil {
		return nil, err
	}
	body := object{"api_key": apiKey, "timestamp": time.Now().Unix(), "nonce": hex.EncodeToString(nonce)}
	for name, value := range fields {
		body[name] = value
	}
	unsigned, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	body["signature"] = sign(endpoint, unsigned)
	text, _ := json.Marshal(body)
	request, err := http.NewRequest("POST", baseURL+"/merchant/"+endpoint, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	err = decoder.Decode(&answer)
	return answer, err
}

// Return whether a callback is genuine. body is the raw bytes.
func verified(header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(callbackSecret, "whsec_"))
	timestamp := header.Get("webhook-timestamp")
	seconds, wrong := strconv.ParseInt(timestamp, 10, 64)
	late := time.Since(time.Unix(seconds, 0)).Abs() > 300*time.Second
	if err != nil || len(key) == 0 || wrong != nil || late {
		return false
	}
	signed := append([]byte(header.Get("webhook-id")+"."+timestamp+"."), body...)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac(key, signed))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(expected), []byte(given)) {
			return true
		}
	}
	return false
}

// Return whether the fields of the address to which a payer returns are genuine. Credit on the callback only.
func verifiedReturn(fields url.Values) bool {
	header := http.Header{}
	header.Set("webhook-id", fields.Get("order_no"))
	header.Set("webhook-timestamp", fields.Get("timestamp"))
	header.Set("webhook-signature", fields.Get("signature"))
	return verified(header, []byte(fields.Get("status")+"."+fields.Get("merchant_order_no")))
}

// To try it: receiver.go puts its own `run` here.
var run = createAndQuery

func main() {
	run()
}

func createAndQuery() {
	number := fmt.Sprint("A-", time.Now().UnixNano()) // your own number of the order
	order := object{"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
	order["merchant_order_no"] = number
	created, err := call("createOrder", order, number)
	if err != nil {
		log.Fatal(err)
	}
	show(created)
	if data, is := created["data"].(object); is && created["code"] == json.Number("1") {
		found, err := call("orderQueryDetail", object{"order_no": data["order_no"]}, "")
		if err != nil {
			log.Fatal(err)
		}
		show(found)
	}
}

func show(answer object) {
	text, _ := json.Marshal(answer)
	fmt.Println(string(text))
}
