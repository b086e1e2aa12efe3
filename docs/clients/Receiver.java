// Receive callbacks and returning payers. Put Merchant.java into the same folder: javac Merchant.java Receiver.java && java Receiver 9000
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

public class Receiver {
    static final Set<String> SEEN = ConcurrentHashMap.newKeySet(); // in your shop: a unique column

    static void take(HttpExchange exchange) throws IOException {
        if (exchange.getRequestMethod().equals("GET")) {
            greet(exchange);
            return;
        }
        byte[] body = exchange.getRequestBody().readAllBytes();
        boolean good = Merchant.verified(exchange.getRequestHeaders()::getFirst, body);
        if (good && SEEN.add(exchange.getRequestHeaders().getFirst("webhook-id"))) {
            String event = new String(body, StandardCharsets.UTF_8);
            System.out.println(Merchant.value(event, "type") + " " + Merchant.value(event, "order_no"));
        }
        exchange.sendResponseHeaders(good ? 204 : 401, -1);
        exchange.close();
    }

    /** A payer returns: show the order, and credit it on the callback. */
    static void greet(HttpExchange exchange) throws IOException {
        Map<String, String> fields = new HashMap<>();
        String query = Objects.requireNonNullElse(exchange.getRequestURI().getRawQuery(), "");
        for (String pair : query.split("&")) {
            String[] parts = pair.split("=", 2);
            fields.put(parts[0], parts.length < 2 ? "" : URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
        }
        boolean good = Merchant.verifiedReturn(fields::get);
        if (good) System.out.println("return " + fields.get("order_no") + " " + fields.get("status"));
        exchange.sendResponseHeaders(good ? 200 : 401, -1);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.createContext("/", Receiver::take);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
