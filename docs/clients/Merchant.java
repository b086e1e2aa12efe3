// Client of Tillbook, to copy. Needs JDK 17 or newer only.
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.time.*;
import java.util.*;
import java.util.function.Function;
import java.util.regex.*;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Merchant {
    static final String URL = setting("MERCHANT_URL", "http://127.0.0.1:8000"); // with the API prefix, if there is one
    static final String API_KEY = setting("MERCHANT_KEY", "demo");
    static final String SECRET = setting("MERCHANT_SECRET", "demo-secret");
    static final String CALLBACK_SECRET = setting("MERCHANT_CALLBACK_SECRET", ""); // if empty, no callback is accepted
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static String setting(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    static void leaves(Object value, String path, Map<String, String> found) {
        String prefix = path.isEmpty() ? "" : path + ".";
        if (value instanceof Map<?, ?> map) {
            map.forEach((name, item) -> leaves(item, prefix + name, found));
        } else if (value instanceof List<?> list) {
            for (int index = 0; index < list.size(); index++) leaves(list.get(index), prefix + index, found);
        } else if (value != null && !value.equals("")) {
            found.put(path, value.toString());
        }
    }

    static String stringToSign(String endpoint, Map<String, ?> fields) {
        Map<String, String> found = new TreeMap<>();
        leaves(fields, "", found);
        StringBuilder text = new StringBuilder(endpoint);
        found.forEach((path, value) -> text.append("\n").append(path).append("=").append(value));
        return text.toString();
    }

    static String sign(String endpoint, Map<String, ?> fields) {
        byte[] text = stringToSign(endpoint, fields).getBytes(StandardCharsets.UTF_8);
        return HexFormat.of().formatHex(mac(SECRET.getBytes(StandardCharsets.UTF_8), text));
    }

    static byte[] mac(byte[] key, byte[] text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(text);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static String json(Object value) { // texts, numbers, booleans, null, maps, lists
        if (value instanceof Map<?, ?> map) return map.entrySet().stream()
            .map(entry -> json(entry.getKey()) + ":" + json(entry.getValue())).collect(Collectors.joining(",", "{", "}"));
        if (value instanceof List<?> list) return list.stream().map(Merchant::json).collect(Collectors.joining(",", "[", "]"));
        if (value instanceof String text) return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
        return String.valueOf(value);
    }

    /** Return the first value of that name in a response. For more, use a JSON library. */
    static String value(String answer, String name) {
        String text = "\"((?:[^\"\\\\]++|\\\\.)*+)\"", other = "([^\",}\\]\\s]+)";
        Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*(?:" + text + "|" + other + ")").matcher(answer);
        if (!found.find()) return "";
        return found.group(1) == null ? found.group(2) : found.group(1).replaceAll("\\\\(.)", "$1");
    }

    /** Return the response's JSON, also of a refusal. IOException: no response; send the same request again with the same key. */
    static String call(String endpoint, Map<String, ?> fields, String idempotencyKey) throws IOException, InterruptedException {
        Map<String, Object> body = new HashMap<>(fields);
        body.putAll(Map.of("api_key", API_KEY, "timestamp", Instant.now().getEpochSecond(), "nonce", "" + UUID.randomUUID()));
        body.put("signature", sign(endpoint, body));
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(URL + "/merchant/" + endpoint))
            .timeout(Duration.ofSeconds(30)).header("Content-Type", "application/json");
        if (!idempotencyKey.isEmpty()) request.header("Idempotency-Key", idempotencyKey);
        request.POST(HttpRequest.BodyPublishers.ofString(json(body)));
        return CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString()).body().strip();
    }

    /** Return whether a callback is genuine. In a servlet: `verified(request::getHeader, body)`; `body` is the raw bytes. */
    static boolean verified(Function<String, String> header, byte[] body) throws IOException {
        String timestamp = Objects.requireNonNullElse(header.apply("webhook-timestamp"), "");
        String signatures = Objects.requireNonNullElse(header.apply("webhook-signature"), "");
        byte[] key = Base64.getDecoder().decode(CALLBACK_SECRET.replaceFirst("^whsec_", ""));
        if (key.length == 0 || !timestamp.matches("[0-9]{1,12}")) return false;
        if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) return false;
        ByteArrayOutputStream signed = new ByteArrayOutputStream();
        signed.write((header.apply("webhook-id") + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        signed.write(body);
        String expected = "v1," + Base64.getEncoder().encodeToString(mac(key, signed.toByteArray()));
        return Arrays.stream(signatures.split(" ")).anyMatch(given -> MessageDigest.isEqual(expected.getBytes(), given.getBytes()));
    }

    /** Return whether the fields of the address to which a payer returns are genuine. In a servlet: `verifiedReturn(request::getParameter)`. Credit on the callback only. */
    static boolean verifiedReturn(Function<String, String> field) throws IOException {
        Map<String, String> names = Map.of("webhook-id", "order_no", "webhook-timestamp", "timestamp", "webhook-signature", "signature");
        String number = Objects.requireNonNullElse(field.apply("merchant_order_no"), "");
        return verified(header -> field.apply(names.get(header)), (field.apply("status") + "." + number).getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] arguments) throws Exception {
        String number = "A-" + UUID.randomUUID(); // your own number of the order
        String created = call("createOrder", Map.of("order_type", 1, "cny_amount", "100.00", "paychannel_id", 2,
            "paychannel_paymethod", "wxpay", "merchant_order_no", number), number);
        System.out.println(created);
        if (value(created, "code").equals("1")) {
            System.out.println(call("orderQueryDetail", Map.of("order_no", value(created, "order_no")), ""));
        }
    }
}
